use super::*;

// Guarantee: commands.limits
#[tokio::test]
async fn memory_beyond_the_limit_is_refused_and_no_core_is_dumped() {
    let small = |program: Program| Program { memory: 64 << 20, ..program };
    let hog = small(program("/bin/dd", &["if=/dev/zero", "of=/dev/null", "bs=512M", "count=1"]));
    let (class, code, message) = failure(hog).await;
    assert_eq!((class, code.as_str()), (Class::Poison, "command_failed"));
    assert!(message.contains("memory exhausted"), "{message}");
    // What it starts is bounded, too.
    let (result, _) = run(small(script("ulimit -c; ulimit -v; ulimit -H -v")), b"").await;
    assert_eq!(result.unwrap(), "0\n65536\n65536");
}

// Guarantee: commands.limits
#[tokio::test]
async fn a_flood_of_output_is_read_to_its_end_and_its_beginning_kept() {
    let flood = "printf begin; head -c 50000000 /dev/zero | tr '\\0' x; head -c 50000000 /dev/zero >&2; echo last >&2";
    let (result, told) = run(Program { output: 1000, ..script(flood) }, b"{}").await;
    let result = result.unwrap();
    assert_eq!(result.len(), 1000);
    assert!(result.starts_with("beginxxx"), "{result}");
    assert_eq!(told.len(), 1, "a line without an end is one line");
    assert!(told[0].chars().count() <= 200, "{}", told[0]);
}

#[tokio::test]
async fn each_line_of_standard_error_is_told_while_the_program_runs() {
    let (result, told) = run(script("echo 10 % >&2; echo 20 % >&2; echo result"), b"{}").await;
    assert_eq!(result.unwrap(), "result");
    assert_eq!(told, ["10 %", "20 %"]);
}

// Guarantee: commands.limits
#[tokio::test]
async fn the_shorter_of_the_two_time_limits_counts() {
    let long = Duration::from_secs(60);
    for (of_program, of_schedule) in [(Duration::from_secs(1), long), (long, Duration::from_secs(1))] {
        let sink = sink(Program { timeout: of_program, ..program("/bin/sleep", &["1000"]) });
        let failure = sink.run("it", b"", of_schedule, &|_| ()).await.unwrap_err();
        assert_eq!((failure.class, failure.code.as_str()), (Class::Poison, "command_timeout"));
        assert_eq!(failure.message, "The command it was ended after 1s");
    }
}

// Guarantee: commands.limits
#[tokio::test]
async fn file_size_and_cpu_time_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large").display().to_string();
    let (class, code, message) = failure(program("/usr/bin/truncate", &["-s", "5G", &file])).await;
    assert_eq!((class, code.as_str()), (Class::Poison, "command_failed"));
    assert!(message.contains("ended by signal 25"), "{message}");
    // Blocks of 512 bytes; and all cores for the whole time, and two seconds.
    let limits = Program { timeout: Duration::from_secs(10), ..script("ulimit -f; ulimit -t") };
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(run(limits, b"").await.0.unwrap(), format!("8388608\n{}", 12 * cores));
}
