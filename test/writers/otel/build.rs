// SPDX-License-Identifier: MIT
fn main() {
    println!("cargo:rustc-link-arg=-Wl,--export-dynamic-symbol=otel_thread_ctx_v1");
}
