//! What goes wrong is said in two lines, with the exit code that scripts rely on.

use tests::{
    tool::Tool,
    topology::two_ns,
    traffic::{Direction, Path, UdpFrame},
};

#[test]
fn a_misspelt_device_is_guessed() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    for command in [&["attach", "naer0", "--rate", "1mbit"][..], &["status", "naer0"], &["detach", "near1"]] {
        let ran = tool.fails(1, command);
        assert!(ran.stderr.contains(command[1]) && ran.stderr.contains("near0"), "{ran}");
    }
    let ran = tool.fails(1, &["attach", "eth0-of-another-machine", "--rate", "1mbit"]);
    assert!(!ran.stderr.contains("did you mean"), "{ran}");
}

#[test]
fn a_device_without_limit_is_told_from_one_that_does_not_exist() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let dev = net.near.dev.as_str();
    for command in
        [&["status", dev][..], &["stats", dev], &["flows", dev], &["detach", dev], &["set", dev, "--rate", "1mbit"]]
    {
        let ran = tool.fails(3, command);
        assert!(ran.stderr.contains(dev), "{ran}");
    }
    let _limit = tool.attach("--rate 1mbit");
    tool.fails(3, &["detach", dev, "--direction", "egress"]);
    tool.fails(3, &["set", dev, "--direction", "egress", "--rate", "2mbit"]);
    assert_eq!(tool.status(Some(dev)).len(), 1);
}

#[test]
fn nothing_at_all_is_no_error() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    assert_eq!(tool.status(None), []);
    assert_eq!(tool.stats(None), []);
    assert_eq!(tool.flows(None), []);
    for command in [&["status"][..], &["stats"], &["flows"], &["detach", "--all"]] {
        tool.ok(command);
    }
}

#[test]
fn quantities_that_are_not_exact_are_refused() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let dev = net.near.dev.as_str();
    let before = net.sandbox.pins();
    for (rate, burst) in [
        ("10mbps", "1mb"),
        ("0", "1mb"),
        ("7", "1mb"),
        ("1.5bit", "1mb"),
        ("2tbit", "1mb"),
        ("-1mbit", "1mb"),
        ("1e6", "1mb"),
        ("1 mbit", "1mb"),
        ("1kb/s", "1mb"),
        ("fast", "1mb"),
        ("", "1mb"),
        ("1mbit", "0"),
        ("1mbit", "1e3"),
        ("1mbit", "2tib"),
        ("1mbit", "1.5b"),
        ("1mbit", "soon"),
    ] {
        let (rate, burst) = (format!("--rate={rate}"), format!("--burst={burst}"));
        let ran = tool.fails(1, &["attach", dev, &rate, &burst]);
        let token = if burst == "--burst=1mb" { &rate["--rate=".len()..] } else { &burst["--burst=".len()..] };
        assert!(ran.stderr.contains(token), "{ran}");
    }
    let ran = tool.fails(1, &["attach", dev, "--rate", "10mbps"]);
    assert!(ran.stderr.contains("10mbit") && ran.stderr.contains("10MB/s"), "both spellings: {ran}");
    assert_eq!(net.sandbox.pins(), before);
}

#[test]
fn words_that_are_not_known_are_refused() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let dev = net.near.dev.as_str();
    for option in [
        "--per=sender",
        "--per=src/33",
        "--per=flow/24",
        "--per=src/24,129",
        "--direction=in",
        "--hook=nftables",
        "--overflow=drop",
        "--order=second",
        "--max-flows=0",
        "--max-flows=many",
        "--account=l4",
        "--speed=1mbit",
    ] {
        let ran = tool.fails(1, &["attach", dev, "--rate=1mbit", option]);
        let token = option.split_once('=').map_or(option, |(_, value)| value);
        assert!(ran.stderr.contains(token) || ran.stderr.contains("--speed"), "{ran}");
    }
    tool.fails(1, &["attach", dev]);
    tool.fails(1, &["set", dev]);
    tool.fails(1, &["detach"]);
    tool.fails(1, &["detach", dev, "--all"]);
    tool.fails(1, &["atach", dev]);
    tool.fails(1, &[]);
}

#[test]
fn an_unknown_namespace_is_named() {
    let net = two_ns();
    // The last -n of a command line is another one.
    let long = "n".repeat(256);
    for name in ["nowhere", "../netns/near", "", &long] {
        let ran = Tool::inside(&net.near).fails(1, &["-n", name, "status"]);
        assert!(ran.stderr.contains(&format!("no network namespace `{name}`")), "{ran}");
    }
}

#[test]
fn a_small_burst_is_warned_about() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let limit = tool.attach("--rate 100mbit --burst 100kb");
    // 200 ms at 100 Mbit/s.
    assert!(limit.ran.stderr.to_lowercase().contains("tcp"), "{}", limit.ran);
    let quiet = limit.again("--rate 100mbit --burst 2500000b");
    assert_eq!(quiet.stderr, "", "{quiet}");
}

/// A packet of each of more flows than a pipe holds lines about.
fn send_flows(path: &Path<'_>) {
    let frames: Vec<Vec<u8>> = (0..5000).map(|sport| UdpFrame { sport, ..path.udp4() }.bytes()).collect();
    path.injector().send_all(&frames.iter().map(Vec::as_slice).collect::<Vec<_>>());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let tool = Tool::on(&net.near);
    let _limit = tool.attach("--rate 1mbit");
    send_flows(&path);
    for arguments in ["flows --top 5000", "-j flows", "stats", "status"] {
        let ran = tool.in_shell(&format!("\"$@\" {arguments} | head -c 1"));
        assert_eq!((ran.stdout.len(), ran.stderr.as_str()), (1, ""), "{ran}");
        let ran = tool.in_shell(&format!("\"$@\" {arguments} >&-"));
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
}

#[test]
fn a_reader_that_takes_its_time_keeps_nobody_waiting() {
    let net = two_ns();
    let path = Direction::Ingress.of(&net);
    let tool = Tool::on(&net.near);
    let _limit = tool.attach("--rate 1mbit");
    send_flows(&path);
    // More than a pipe holds, of which one byte is read.
    for looking in ["flows --top 5000", "-j flows"] {
        let change = "head -c 1 >/dev/null; \"$@\" set near0 --rate 2mbit >/dev/null; echo $?";
        let ran = tool.in_shell(&format!("\"$@\" {looking} | {{ {change}; }}"));
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("0\n", ""), "{ran}");
    }
    // A change whose output finds no room in the pipe.
    let change = "head -c 65536 /dev/zero; \"$@\" set near0 --rate 3mbit";
    let look =
        "for n in 1 2 3 4 5 6 7 8 9; do sleep 0.2; \"$@\" -j status | grep -o 3000000 && break; done; cat >/dev/null";
    let ran = tool.in_shell(&format!("{{ {change}; }} | {{ {look}; }}"));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("3000000\n", ""), "{ran}");
}

#[test]
fn a_device_named_like_an_option_can_be_undone_as_said() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    net.near.ns.ip("link add name --all type veth peer name other");
    let _limit = tool.attach("--rate 1mbit");
    let ran = tool.ok(&["attach", "--rate", "1mbit", "--", "--all"]);
    let undo = ran.stdout.lines().find_map(|line| line.strip_prefix("undo: shaper -n ")).expect("how to undo it");
    let (_, undo) = undo.split_once(' ').expect("a command behind the namespace");
    assert_eq!(undo, "detach --direction ingress -- --all");
    assert_eq!(tool.in_shell(&format!("\"$@\" {undo}")).code, Some(0));
    assert_eq!(tool.status(None).len(), 1, "only the device that is meant");
}

#[test]
fn a_name_does_not_reach_the_terminal_as_a_command() {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let name = "\u{1b}[2J\u{9b}x";
    net.near.ns.ip(&format!("link add name {name} type veth peer name other"));
    let mut said = vec![tool.ok(&["attach", name, "--rate", "1mbit"])];
    for looking in ["status", "stats", "flows"] {
        said.extend([tool.ok(&[looking]), tool.ok(&[looking, name, "-v"])]);
    }
    assert_eq!(tool.status(None)[0].dev, name, "JSON is exact");
    said.push(tool.ok(&["set", name, "--rate", "2mbit"]));
    said.push(tool.ok(&["detach", name]));
    said.push(tool.fails(3, &["detach", name]));
    said.push(tool.fails(1, &["status", &format!("{name}y")]));
    said.push(tool.fails(1, &["attach", name, "--rate", name]));
    for ran in said {
        assert!(!ran.text().contains(|c: char| c.is_control() && c != '\n'), "{ran:?}");
        assert!(ran.text().contains("[2J"), "{ran:?}");
    }
}

#[test]
fn capabilities_without_access_to_the_files_are_told_apart() {
    let net = two_ns();
    let _limit = Tool::on(&net.near).attach("--rate 1mbit");
    let wrapper = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let some = ["--inh-caps=-all,+bpf,+net_admin,+perfmon", "--ambient-caps=-all,+bpf,+net_admin,+perfmon"];
    let all = [some[0].to_owned() + ",+dac_override", some[1].to_owned() + ",+dac_override"];
    let wrapped = [&wrapper[..], &some].concat();
    let tool = Tool::inside(&net.near).for_everybody().through(&wrapped);
    for command in [&["status"][..], &["attach", "near0", "--rate", "2mbit"], &["detach", "near0"]] {
        let ran = tool.fails(4, command);
        assert!(ran.stderr.contains("access to /run/shaper") && ran.stderr.contains("CAP_DAC_OVERRIDE"), "{ran}");
    }
    let wrapped = [&wrapper[..], &all.each_ref().map(String::as_str)].concat();
    let tool = Tool::inside(&net.near).for_everybody().through(&wrapped);
    tool.ok(&["set", "near0", "--rate", "2mbit"]);
    tool.ok(&["attach", "near0", "--rate", "3mbit", "--max-flows", "9"]);
    tool.ok(&["status"]);
}
