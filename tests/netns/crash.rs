//! Killed at any instant, the tool leaves the old state or the new one, and the next command finds out which.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use tests::{
    tool::Tool,
    topology::{TwoNs, two_ns, until},
    traffic::{Direction, UdpFrame, ethertype},
};

use crate::HOOKS;

const ROUNDS: u16 = 60;

/// What a state lets through of [`SENT`] packets of a new flow: the burst, or everything.
type Passes = u64;
const SENT: Passes = 40;

/// Commands that are killed, and the state that each leads to.
const COMMANDS: [(&[&str], Passes); 6] = [
    (&["attach", "near0", "--rate", "8bit", "--burst", "640b"], 10),
    (&["attach", "near0", "--rate", "8bit", "--burst", "1280b", "--overflow", "closed"], 20),
    (&["attach", "near0", "--rate", "8bit", "--burst", "1920b", "--per", "src"], 30),
    (&["set", "near0", "--burst", "640b"], 10),
    (&["set", "near0", "--burst", "1280b"], 20),
    (&["detach", "near0"], SENT),
];

#[test]
fn a_kill_leaves_the_old_or_the_new_state_on_tcx() {
    killed(HOOKS[0]);
}

#[test]
fn a_kill_leaves_the_old_or_the_new_state_on_clsact() {
    killed(HOOKS[1]);
}

fn killed(hook: &str) {
    let net = two_ns();
    let tool = Tool::on(&net.near);
    let before = net.sandbox.pins();
    let start = Instant::now();
    tool.ok(&["attach", "near0", "--hook", hook, "--rate", "8bit", "--burst", "640b"]);
    let longest = start.elapsed();
    let mut objects = vec![net.near.objects()];
    let mut random = Random(0x5eed);
    let mut state = 10;
    for round in 0..ROUNDS {
        let (command, target) = COMMANDS[random.below(COMMANDS.len() as u64) as usize];
        let mut line = command.to_vec();
        if command[0] == "attach" {
            line.extend(["--hook", hook]);
        }
        // Some commands are much shorter than the first one.
        let most = longest.as_nanos() as u64 >> random.below(5);
        let delay = Duration::from_nanos(random.below(most));
        let mut child = tool.start(&line);
        sleep(delay);
        child.kill().expect("kill");
        let ended = child.wait().expect("wait");

        let story = format!("{hook} round {round}: {} after {delay:?}, {ended}", line.join(" "));
        let new = observed(&net, &tool, round, &story);
        // `set` changes nothing where nothing is attached.
        let target = if command[0] == "set" && state == SENT { SENT } else { target };
        assert!(new == state || new == target, "{story}: {state} -> {target} ended at {new}\n{}", tool.state());
        state = new;
        objects.push(net.near.objects());
    }
    tool.ok(&["detach", "--all"]);
    assert_eq!(tool.status(None), []);
    assert_eq!(net.sandbox.pins(), before, "{hook}");
    assert!(net.near.objects().is_empty(), "{hook}: {:?}", net.near.objects());
    assert!(!net.near.ns.tc("qdisc show dev near0").contains("clsact"));
    until("the kernel to free programs and maps", || objects.iter().all(|seen| seen.alive().is_empty()).then_some(()));
}

/// What passes, which must be what `status` says.
fn observed(net: &TwoNs, tool: &Tool<'_>, round: u16, story: &str) -> Passes {
    let status = tool.status(None);
    let said = match &status[..] {
        [] => SENT,
        [one] => one.burst_bytes.expect("a burst") / 64,
        more => panic!("{story}: {more:?}"),
    };
    let path = Direction::Ingress.of(net);
    let arrivals = path.arrivals(ethertype::IPV4);
    // A new source each time, so that its bucket is full.
    let [high, low] = round.to_be_bytes();
    let frame = UdpFrame { src: [10, 0, high, low].into(), ..path.udp4() };
    path.injector().send(&frame, SENT as usize);
    let passed = arrivals.count();
    assert_eq!(passed, said, "{story}: passed, and as status says\n{}", tool.state());
    passed
}

/// A reproducible series of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}
