// SPDX-License-Identifier: MIT
// Labels in Node: each asynchronous task has its own, though all share one thread.
//
//     labelprof run -- node examples/labels_node.js ./labels.node
//     labelprof top --by tenant labelprof.*.pb.gz
'use strict';
const { AsyncLocalStorage, createHook } = require('async_hooks');
const path = require('path');
const addon = require(path.resolve(process.argv[2]));

const context = new AsyncLocalStorage();

// What runs next belongs to some task: its labels are the thread's until it ends or waits.
createHook({
  init() {},
  before() {
    for (const [key, value] of Object.entries(context.getStore() || {})) addon.set(key, value);
  },
  after() {
    for (const key of Object.keys(context.getStore() || {})) addon.unset(key);
  },
}).enable();

function withLabels(labels, task) {
  return context.run(labels, async () => {
    await null; // from here on the hooks know the task
    return task();
  });
}

const kept = [];
const wait = () => new Promise((resolve) => setImmediate(resolve));

async function serve(bytes) {
  for (let i = 0; i < 4; i++) {
    kept.push(Buffer.alloc(bytes, 1));
    await wait();
  }
}

Promise.all([
  withLabels({ tenant: 'acme' }, () => serve(1000000)),
  withLabels({ tenant: 'globex' }, () => serve(300000)),
]).then(() => console.log('done'));
