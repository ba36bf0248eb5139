// SPDX-License-Identifier: MIT
//! Labels by the custom-labels crate alone: nested scopes, another thread's, and tasks whose label
//! sets are swapped in at each poll. Each place leaks objects in a function of its own.
use custom_labels::asynchronous::Label;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};

/// Of one size each, or the compiler makes one function of them all.
macro_rules! leaks {
    ($($name:ident $size:literal)*) => {$(
        #[no_mangle]
        #[inline(never)]
        extern "C" fn $name() {
            std::mem::forget(black_box(Vec::<u8>::with_capacity($size)));
            black_box(());
        }
    )*};
}
leaks! {
    leak_outside 1001
    leak_in_scope 1002
    leak_in_inner_scope 1003
    leak_in_thread 1004
    leak_in_task 1005
    leak_between 1006
}

struct Awake;
impl Wake for Awake {
    fn wake(self: Arc<Self>) {}
}

/// Ready at the fourth poll; each poll leaks one object.
struct Task(u32);
impl Future for Task {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        leak_in_task();
        self.0 += 1;
        if self.0 == 4 { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn run_tasks() {
    let waker = Arc::new(Awake).into();
    let mut context = Context::from_waker(&waker);
    let mut tasks: Vec<_> = (0..8)
        .map(|i| Box::pin(Task(0).with_label("task", format!("task-{i}"))))
        .collect();
    while !tasks.is_empty() {
        tasks.retain_mut(|task| {
            let pending = task.as_mut().poll(&mut context).is_pending();
            leak_between();
            pending
        });
    }
}

fn main() {
    leak_outside();
    custom_labels::with_label("tenant", "acme", || {
        leak_in_scope();
        custom_labels::with_label("route", "/cart", || leak_in_inner_scope());
    });
    std::thread::spawn(|| {
        custom_labels::with_label("tenant", "of the thread", || leak_in_thread());
    })
    .join()
    .unwrap();
    run_tasks();
    leak_outside();
}
