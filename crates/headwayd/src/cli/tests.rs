use super::*;

fn run(options: &[&str]) -> Box<Run> {
    let words = ["headwayd", "run"]
        .into_iter()
        .chain(options.iter().copied());
    match Cli::try_parse_from(words).expect("options").command {
        Command::Run(run) => run,
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_agent_refuses_options_of_an_agent() {
    for (options, hint) in [
        (&["--metrics"][..], "remove --metrics"),
        (&["--shadow"], "remove --shadow"),
        (
            &["--shadow", "file", "--busy-poll"],
            "remove --shadow, --busy-poll",
        ),
        (&["--state", "/tmp"], "remove --state"),
        (&["--report-interval", "0"], "remove --report-interval"),
        (&["--flows", "1", "--ring", "8"], "remove --flows, --ring"),
    ] {
        let options = [&["--no-agent"], options].concat();
        let error = check(&run(&options)).expect_err(hint).to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
    let all = [
        "--no-agent",
        "--default",
        "--log",
        "json",
        "--socket",
        "/tmp/s",
    ];
    assert!(check(&run(&all)).is_ok());
}

#[test]
fn options_that_need_another_policy_are_refused() {
    for (options, hint) in [
        (
            &["--controllers", "headway_bbr", "--shadow"][..],
            "need a policy",
        ),
        (
            &["--controllers", "headway_bbr", "--state", "/tmp"],
            "need a policy",
        ),
        (
            &["--policy", "owl", "--state", "/tmp"],
            "no policy given here learns",
        ),
        (
            &["--policy", "owl", "--state", "/tmp", "--learn-from", "1000"],
            "--learn-from names the users",
        ),
        (
            &["--policy", "aurora:model=int8-v1", "--shadow", "file"],
            "evaluated in the kernel",
        ),
    ] {
        let Err(error) = chosen(&run(options)) else {
            panic!("{options:?}")
        };
        let error = error.to_string();
        assert!(error.contains(hint) && !error.contains('\n'), "{error}");
    }
    let learns = ["--policy", "owl:online=true", "--state", "/tmp", "--shadow"];
    assert!(chosen(&run(&learns)).is_ok());
    let named = [
        "--policy",
        "rax",
        "--state",
        "/tmp",
        "--learn-from",
        "1000,1001",
    ];
    assert!(chosen(&run(&named)).is_ok());
    assert_eq!(run(&named).learn_from, [1000, 1001]);
}

/// An earlier agent has pinned the program with another number of slots.
#[test]
fn user_share_counts_the_slots_of_the_program() {
    let asked = ["--policy", "owl", "--flows", "16384", "--user-share", "50"];
    for (slots, of_user) in [(4096, 2048), (16_384, 8192), (1, 1)] {
        let options = agent_options(&run(&asked), slots);
        assert_eq!(options.flows_of_user, Some(of_user));
    }
}

fn start_of(unit: &str) -> &str {
    let mut lines = unit.lines();
    lines
        .find(|line| line.starts_with("ExecStart="))
        .expect("it starts something")
}

#[test]
fn the_unit_runs_this_program() {
    let unit = unit().expect("a path");
    let own = env::current_exe().expect("a path");
    let start = format!("\nExecStart={} run --log json", own.display());
    assert!(unit.contains(&start), "{unit}");
    assert!(!unit.contains(USUAL_PATH), "{unit}");
    // A reload by signal works with any --socket. The unit serves no metrics unless they are asked
    // for.
    assert!(
        unit.contains("\nExecReload=/bin/kill -HUP $MAINPID\n"),
        "{unit}"
    );
    assert!(!start_of(&unit).contains("--metrics"), "{unit}");
    for bound in [
        "MemoryMax=",
        "TasksMax=",
        "SystemCallFilter=@system-service bpf\n",
    ] {
        assert!(unit.contains(&format!("\n{bound}")), "{bound}");
    }
}

#[test]
fn help_has_an_example() {
    use clap::CommandFactory;
    let help = Cli::command().render_help().to_string();
    assert!(help.contains("headwayd run --policy owl"), "{help}");
}
