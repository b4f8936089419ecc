//! `apply` with rules, killed before one of its system calls: the old configuration is in force or the new one, the tool
//! knows which, and no counter goes down.
//!
//! There are hundreds of calls, most of which look at something. Those that change something are taken, and others
//! after the change has begun; where these are too many, every so many-th.

use tests::{
    tool::{Call, Config, End, Stepped, Tool},
    topology::{TwoNs, two_ns, until},
    traffic::Direction,
};

/// Rules that do not fit into the maps of an attachment that has two.
const MANY: u16 = 300;

const SENT: usize = 50;

/// What a new source may send that no rule matches, and one that a rule matches, in packets.
type Passes = [u64; 2];

const OLD: Passes = [10, 20];
const NEW: Passes = [30, 40];

fn config([rest, net]: Passes, rules: u16) -> Config {
    let keys = |packets: u64| format!("rate=8bit burst={}b", 64 * packets);
    let none = |config: Config| config.rules(rules, "rate=8bit burst=64b");
    none(Config::of("near0", &keys(rest)).rule("net", &format!("match=172.16.0.0/12 {}", keys(net))))
}

/// Those before which the tool is killed, at most `most`.
fn chosen(calls: &[Call], most: usize) -> Vec<usize> {
    let last = calls.iter().rposition(|call| call.changes_map()).expect("a call that changes a map");
    let switch = calls.iter().position(|call| call.is_link_update()).unwrap_or(last);
    let (before, after): (Vec<usize>, Vec<usize>) =
        (0..calls.len()).filter(|n| *n > switch || calls[*n].changes()).partition(|n| *n <= switch);
    // Backwards, so that those next to the switch and at the end are among them, where most can be left undone.
    let some = |wanted: Vec<usize>, most| {
        let step = wanted.len().div_ceil(most);
        wanted.into_iter().rev().step_by(step)
    };
    some(before, most / 2).chain(some(after, most - most / 2)).collect()
}

struct Scene<'a> {
    net: &'a TwoNs,
    tool: Tool<'a>,
    /// What was sent to either rule.
    sent: Passes,
    source: u16,
}

impl Scene<'_> {
    /// What passes, which the tool must know: `diff` says that one file is in force, and not the other.
    fn observe(&mut self, files: [(&str, Passes); 2], story: &str) -> Passes {
        self.count(story);
        let in_force = files.map(|(path, _)| match self.tool.run(&["diff", path]).code {
            Some(0) => true,
            Some(6) => false,
            _ => panic!("{story}: {}", self.tool.run(&["diff", path])),
        });
        let said = match in_force {
            [true, false] => files[0].1,
            [false, true] => files[1].1,
            _ => panic!("{story}: {in_force:?}\n{}", self.tool.state()),
        };
        self.source += 1;
        let [high, low] = self.source.to_be_bytes();
        let path = Direction::Ingress.of(self.net);
        let passes = [11, 172].map(|first| path.passes(&path.with_remote([first, 16, high, low].into()), SENT));
        self.sent = self.sent.map(|sent| sent + SENT as u64);
        assert_eq!(passes, said, "{story}: passed, and as `diff` says\n{}", self.tool.state());
        self.count(story);
        passes
    }

    /// The counters have all that was sent.
    fn count(&self, story: &str) {
        let stats = self.tool.stats(None);
        let counted = ["default", "net"].map(|rule| {
            let row = stats.iter().find(|row| row.rule == rule);
            row.map_or_else(|| panic!("{story}: no row of {rule}"), |row| row.judged_packets())
        });
        assert_eq!(counted, self.sent, "{story}: counted, and sent");
    }
}

#[test]
fn an_apply_that_only_switches_is_cut_short_anywhere() {
    let net = two_ns();
    cut(&net, 8, [("/run/old.toml", OLD, 0), ("/run/new.toml", NEW, 1)], false);
}

#[test]
fn an_apply_that_needs_larger_maps_is_cut_short_anywhere() {
    let net = two_ns();
    cut(&net, 6, [("/run/old.toml", OLD, 0), ("/run/new.toml", NEW, MANY)], true);
}

/// Kills the way from the first file to the second; `afresh` if the first has to be attached anew each time, because
/// maps do not shrink.
fn cut(net: &TwoNs, most: usize, files: [(&str, Passes, u16); 2], afresh: bool) {
    let tool = Tool::on(&net.near);
    let before = net.sandbox.pins();
    for (path, passes, rules) in files {
        tool.write(path, config(passes, rules).text());
    }
    let [old, new] = files.map(|(path, ..)| ["apply", "-f", path]);
    let files = files.map(|(path, passes, _)| (path, passes));
    let mut scene = Scene { net, tool: tool.clone(), sent: [0; 2], source: 0 };
    // Once, so that what is only needed the first time does not count.
    tool.ok(&old);
    tool.ok(&new);
    let restart = |scene: &mut Scene<'_>| {
        if afresh {
            tool.ok(&["detach", "--all"]);
            scene.sent = [0; 2];
        }
        tool.ok(&old);
    };
    restart(&mut scene);
    let Stepped { end, calls } = tool.step(&new, None);
    assert_eq!(end, End::Exit(0));
    let mut objects = Vec::new();
    let mut seen = [0; 2];
    for at in chosen(&calls, most) {
        restart(&mut scene);
        assert_eq!(scene.observe(files, "before"), OLD);
        let Stepped { end, .. } = tool.step(&new, Some(at));
        let story = format!("killed before call {at} of {}, {:?}", calls.len(), calls[at]);
        assert_eq!(end, End::Killed, "{story}");
        let passes = scene.observe(files, &story);
        seen[usize::from(passes == NEW)] += 1;
        objects.push(net.near.objects());
        tool.ok(&new);
        assert_eq!(scene.observe(files, &format!("{story}, and applied again")), NEW);
    }
    assert!(seen.iter().all(|seen| *seen > 0), "old and new in force after a kill: {seen:?} times");
    tool.ok(&["detach", "--all"]);
    assert_eq!(net.sandbox.pins(), before);
    until("the kernel to free programs and maps", || objects.iter().all(|seen| seen.alive().is_empty()).then_some(()));
}
