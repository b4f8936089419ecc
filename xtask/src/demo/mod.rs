//! `cargo xtask demo`: what a limit does, shown with real traffic. Two network namespaces joined by a veth pair; TCP and
//! UDP through them without a limit and with one; the table of flows; then everything is as it was.

mod interrupt;
mod namespace;
mod shaper;
mod table;
mod traffic;

use anyhow::{Context as _, Result, bail};

use crate::{output::say, process, workspace::build_shaper};
use namespace::Pair;
use shaper::Shaper;
use table::{Measured, bits};
use traffic::Load;

/// As typed on the command line of the tool, and as a number.
const LIMIT: (&str, f64) = ("100mbit", 100e6);

pub(crate) fn run() -> Result<()> {
    if !process::is_root() {
        bail!("the demo makes network namespaces and loads a program into the kernel: run it as root");
    }
    if process::find("ip").is_none() {
        bail!("the demo needs the command `ip`: install the package iproute2");
    }
    say("Building shaper.");
    let tool = build_shaper(true)?;
    interrupt::catch().context("cannot catch Ctrl-C")?;

    chapter("Two network namespaces joined by a veth pair");
    let pair = Pair::make()?;
    // After the pair, so that a limit is always removed before its device is.
    let mut shaper = Shaper::new(tool, pair.server.name());

    chapter("Without a limit");
    let without = measure(&pair)?;

    chapter(&format!("With a limit of {} for each flow that the server receives", bits(LIMIT.1)));
    shaper.attach(LIMIT.0)?;
    let with = measure(&pair)?;

    chapter("Who was limited, and why");
    shaper.show("flows")?;
    shaper.show("stats")?;

    chapter("Cleaning up");
    shaper.detach()?;
    pair.remove()?;

    chapter("Result");
    table::print(&without, &with, LIMIT.1);
    table::verify(&with, LIMIT.1)
}

fn measure(pair: &Pair) -> Result<Measured> {
    say("   TCP, as fast as it can");
    let tcp = traffic::run(pair, Load::Tcp)?;
    say(format_args!("      received {}", bits(tcp.received)));
    let offered = 2.0 * LIMIT.1;
    say(format_args!("   UDP, {} of {}-byte packets", bits(offered), traffic::FRAME));
    let udp = traffic::run(pair, Load::Udp { bits_per_second: offered })?;
    say(format_args!("      received {}, lost {:.1} %", bits(udp.received), udp.lost_percent()));
    Ok(Measured { tcp, udp })
}

fn chapter(title: &str) {
    say(format_args!("\n{title}"));
}
