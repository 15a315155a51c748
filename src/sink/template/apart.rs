//! Printing can take seconds for a row, and there may be many such rows in a row: meanwhile others need the thread, `/livez` for one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::work::cpu;

/// A template that once took more CPU time than this leaves the thread to others from then on.
const QUICK: Duration = Duration::from_millis(10);
/// So does every template for a row of which it reads more bytes than this.
const SHORT: usize = 64 << 10;

/// Whether a template takes long.
#[derive(Debug, Default)]
pub(super) struct Apart {
    is_slow: AtomicBool,
}

impl Apart {
    /// Does what may take long with so many bytes, while the runtime's other tasks go on.
    pub(super) fn run<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes > SHORT || self.is_slow.load(Ordering::Relaxed) {
            return apart(work);
        }
        let begun = cpu();
        let done = work();
        if cpu().saturating_sub(begun) > QUICK {
            self.is_slow.store(true, Ordering::Relaxed);
        }
        done
    }
}

/// A runtime of one thread has no other one for its tasks.
fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        Ok(_) | Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::message::TemplateValue;
    use crate::sink::template::{Mode, Template};

    /// Whether another task of the only thread goes on while a template is printed for this list, after so many times.
    fn others_go_on(list: &str, before: usize) -> bool {
        let source = "{% for a in v | fromjson %}{% for b in [1, 2, 3] %}{% endfor %}{% endfor %}";
        let template = Template::compile("key", source, Mode::Text).expect("compiles");
        let list = list.to_owned();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let prints = async move {
            let print = || template.render(|_| Some(TemplateValue::Text(list.as_bytes()))).expect("is printed");
            for _ in 0..before {
                print();
            }
            let goes_on = Arc::new(());
            let other = tokio::spawn({
                let goes_on = Arc::clone(&goes_on);
                async move { drop(goes_on) }
            });
            print();
            let went_on = Arc::strong_count(&goes_on) == 1;
            other.await.expect("ends");
            went_on
        };
        runtime.block_on(async { tokio::spawn(prints).await.expect("ends") })
    }

    // Guarantee: secrets.template-limits
    #[test]
    fn other_tasks_go_on_while_a_template_takes_long() {
        let list = |elements: usize| format!("[{}0]", "0,".repeat(elements));
        assert!(others_go_on(&list(33_000), 0), "a long value");
        assert!(others_go_on(&list(20_000), 1), "one that has taken long before");
    }

    #[tokio::test]
    async fn runtime_of_one_thread_prints_long_values() {
        let template = Template::compile("key", "{{ v | fromjson | length }}", Mode::Text).expect("compiles");
        let list = format!("[{}0]", "0,".repeat(50_000));
        assert_eq!(template.render(|_| Some(TemplateValue::Text(list.as_bytes()))), Ok("50001".to_owned()));
    }
}
