//! cls_bpf filters on the clsact qdisc: the hook of kernels before 6.6, driven by route netlink.
//!
//! A filter is ours if it has our handle and one of our programs. The qdisc is shared with everybody: it is added if it
//! is missing, and removed only if we added it and nothing is left in it.

use std::{
    io,
    os::fd::{AsFd as _, AsRawFd as _},
};

use super::load::Program;
use crate::{
    error::{Error, Result},
    model::{Direction, Order},
    net::netlink::{Attributes, Message, Socket, field},
};

/// Parent of the clsact and ingress qdiscs (`TC_H_CLSACT`).
const PARENT: u32 = 0xffff_fff1;
/// Their handle.
const QDISC: u32 = 0xffff_0000;
/// Parents of the filters of each direction.
const INGRESS: u32 = 0xffff_fff2;
const EGRESS: u32 = 0xffff_fff3;
/// Every protocol, in network byte order in the low half of `tcm_info`.
const ETH_P_ALL: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;

/// Handle of our filters: "sh".
const HANDLE: u32 = 0x7368;
/// Name of our filters, for people.
const NAME: &[u8] = b"shaper\0";
/// Priority of a filter that goes last, unless others are behind it: the first that the kernel itself would choose.
const LAST: u16 = 0xc000;

/// Attributes of a cls_bpf filter (`TCA_BPF_*`), inside `TCA_OPTIONS`.
mod bpf {
    pub(super) const FD: u16 = 6;
    pub(super) const NAME: u16 = 7;
    pub(super) const FLAGS: u16 = 8;
    pub(super) const ID: u16 = 11;
    /// The program's return value is the verdict.
    pub(super) const DIRECT_ACTION: u32 = 1;
}

/// One hook of one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    ifindex: u32,
    parent: u32,
}

/// A filter on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    priority: u16,
    protocol: u32,
    handle: u32,
    kind: String,
    /// Whether it has our name.
    named: bool,
    /// Id of its program, if it has one.
    pub(super) program_id: Option<u32>,
}

impl Filter {
    fn is_ours(&self) -> bool {
        self.handle == HANDLE && self.program_id.is_some()
    }
}

impl Hook {
    pub(super) const fn new(ifindex: u32, direction: Direction) -> Self {
        let parent = match direction {
            Direction::Ingress => INGRESS,
            Direction::Egress => EGRESS,
        };
        Self { ifindex, parent }
    }

    /// Whether a clsact qdisc has to be added first. An `ingress` qdisc takes its place and cannot be shared.
    pub(super) fn lacks_qdisc(self) -> Result<bool> {
        let mut request = Message::dump(libc::RTM_GETQDISC);
        request.body(&self.tcmsg(0, 0, 0));
        let answers = ask(request, "list the qdiscs")?;
        let mine = answers.iter().filter(|answer| self.concerns(answer, PARENT));
        match mine.filter_map(|answer| attributes(answer).text(libc::TCA_KIND)).next().as_deref() {
            Some("clsact") => Ok(false),
            Some(kind) => Err(Error::Busy {
                what: format!("the device has an `{kind}` qdisc where clsact would go"),
                hint: "use `--hook tcx` (Linux 6.6), or replace that qdisc by clsact, which does the same and more"
                    .into(),
            }),
            None => Ok(true),
        }
    }

    /// Adds the qdisc.
    pub(super) fn add_qdisc(self) -> Result<()> {
        let mut request = Message::request(libc::RTM_NEWQDISC, libc::NLM_F_CREATE | libc::NLM_F_EXCL);
        request.body(&self.tcmsg(QDISC, PARENT, 0));
        request.attribute(libc::TCA_KIND, b"clsact\0");
        Socket::route().and_then(|socket| socket.request(request)).map_err(Error::kernel(
            "add a clsact qdisc to the device",
            "the kernel needs CONFIG_NET_SCH_INGRESS; `tc qdisc show` lists what is there",
        ))
    }

    /// Removes the qdisc if no filter is left on either hook of it.
    pub(super) fn remove_empty_qdisc(self) -> Result<()> {
        for parent in [INGRESS, EGRESS] {
            if !(Self { parent, ..self }).filters()?.is_empty() {
                return Ok(());
            }
        }
        let mut request = Message::request(libc::RTM_DELQDISC, 0);
        request.body(&self.tcmsg(QDISC, PARENT, 0));
        match Socket::route().and_then(|socket| socket.request(request)) {
            // Somebody else has removed it, or the device is gone.
            Err(error) if missing(&error) => Ok(()),
            result => result.map_err(Error::kernel("remove the clsact qdisc", "`tc qdisc show` lists what is there")),
        }
    }

    /// Our filters: with our handle and a program that `known` knows.
    pub(super) fn ours(self, known: impl Fn(u32) -> bool) -> Result<Vec<Filter>> {
        let mut filters = self.filters()?;
        filters.retain(|filter| filter.is_ours() && filter.program_id.is_some_and(&known));
        Ok(filters)
    }

    /// All that can be ours, by handle and name: also those whose program nobody knows any more.
    pub(super) fn named(self) -> Result<Vec<Filter>> {
        let mut filters = self.filters()?;
        filters.retain(|filter| filter.is_ours() && filter.named);
        Ok(filters)
    }

    /// Adds a filter before or behind all others.
    pub(super) fn add(self, program: &Program, order: Order) -> Result<()> {
        let priority = priority(&self.filters()?, order).ok_or_else(|| Error::Busy {
            what: match order {
                Order::First => "other filters leave no priority to run first at".into(),
                Order::Last => "other filters leave no priority to run last at".into(),
            },
            hint: "`tc filter show` lists them; use the other `--order`".into(),
        })?;
        self.put(program, priority, libc::NLM_F_CREATE | libc::NLM_F_EXCL, "add the filter")
    }

    /// Replaces the program of a filter in one step: each packet meets the old or the new one.
    pub(super) fn replace(self, filter: &Filter, program: &Program) -> Result<()> {
        self.put(program, filter.priority, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, "replace the filter")
    }

    /// Removes a filter.
    pub(super) fn remove(self, filter: &Filter) -> Result<()> {
        let mut request = Message::request(libc::RTM_DELTFILTER, 0);
        request.body(&self.tcmsg(HANDLE, self.parent, information(filter.priority)));
        request.attribute(libc::TCA_KIND, b"bpf\0");
        match Socket::route().and_then(|socket| socket.request(request)) {
            Err(error) if missing(&error) => Ok(()),
            result => result.map_err(Error::kernel("remove the filter", "`tc filter show` lists what is there")),
        }
    }

    fn put(self, program: &Program, priority: u16, flags: libc::c_int, what: &str) -> Result<()> {
        let fd = program.as_fd().as_raw_fd().cast_unsigned();
        let mut request = Message::request(libc::RTM_NEWTFILTER, flags);
        request.body(&self.tcmsg(HANDLE, self.parent, information(priority)));
        request.attribute(libc::TCA_KIND, b"bpf\0");
        request.nested(libc::TCA_OPTIONS, |options| {
            options.attribute(bpf::FD, &fd.to_ne_bytes());
            options.attribute(bpf::NAME, NAME);
            options.attribute(bpf::FLAGS, &bpf::DIRECT_ACTION.to_ne_bytes());
        });
        Socket::route()
            .and_then(|socket| socket.request(request))
            .map_err(Error::kernel(what, "the kernel needs CONFIG_NET_CLS_BPF; `tc filter show` lists what is there"))
    }

    /// All filters of the hook, whosever.
    fn filters(self) -> Result<Vec<Filter>> {
        let mut request = Message::dump(libc::RTM_GETTFILTER);
        request.body(&self.tcmsg(0, self.parent, 0));
        let answers = ask(request, "list the filters")?;
        Ok(answers
            .iter()
            .filter(|answer| self.concerns(answer, self.parent))
            .filter_map(|answer| filter(answer))
            .collect())
    }

    /// `struct tcmsg`: family, padding, index (at 4), handle (at 8), parent (at 12), info (at 16).
    fn tcmsg(self, handle: u32, parent: u32, info: u32) -> [u8; 20] {
        let mut bytes = [0; 20];
        let numbers = [0, self.ifindex, handle, parent, info];
        for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }

    fn concerns(self, answer: &[u8], parent: u32) -> bool {
        number(answer, 4) == Some(self.ifindex) && number(answer, 12) == Some(parent)
    }
}

/// Indices of the devices that have a clsact qdisc.
pub(super) fn devices() -> Result<Vec<u32>> {
    let mut request = Message::dump(libc::RTM_GETQDISC);
    request.body(&[0; 20]);
    let answers = ask(request, "list the qdiscs")?;
    let clsact = answers.iter().filter(|answer| {
        number(answer, 12) == Some(PARENT) && attributes(answer).text(libc::TCA_KIND).as_deref() == Some("clsact")
    });
    Ok(clsact.filter_map(|answer| number(answer, 4)).collect())
}

/// `tcm_info` of a filter for all protocols.
fn information(priority: u16) -> u32 {
    u32::from(priority) << 16 | ETH_P_ALL
}

fn ask(request: Message, what: &str) -> Result<Vec<Vec<u8>>> {
    match Socket::route().and_then(|socket| socket.dump(request)) {
        // No such device (any more): nothing is on it.
        Err(error) if missing(&error) => Ok(Vec::new()),
        answers => answers.map_err(Error::kernel(what, "the kernel needs CONFIG_NET_SCHED")),
    }
}

fn missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::EINVAL))
}

fn number(answer: &[u8], offset: usize) -> Option<u32> {
    field(answer, offset).map(u32::from_ne_bytes)
}

fn attributes(answer: &[u8]) -> Attributes<'_> {
    Attributes::of(answer.get(20..).unwrap_or_default())
}

fn filter(answer: &[u8]) -> Option<Filter> {
    let info = number(answer, 16)?;
    let attributes = attributes(answer);
    let kind = attributes.text(libc::TCA_KIND)?;
    let options = attributes.get(libc::TCA_OPTIONS).filter(|_| kind == "bpf");
    let program_id = options.and_then(|options| Attributes::of(options).number(bpf::ID));
    let named = options.is_some_and(|options| Attributes::of(options).get(bpf::NAME) == Some(NAME));
    Some(Filter {
        priority: (info >> 16) as u16,
        protocol: info & 0xffff,
        handle: number(answer, 8)?,
        kind,
        named,
        program_id,
    })
}

/// The priority of a filter that is to run before or behind all of `filters`; low numbers run first. `None` if there is
/// none.
fn priority(filters: &[Filter], order: Order) -> Option<u16> {
    let others = || filters.iter().filter(|filter| !filter.is_ours());
    let free = |priority| filters.iter().all(|filter| filter.priority != priority);
    match order {
        Order::First => match others().map(|filter| filter.priority).min() {
            None | Some(2..) => free(1).then_some(1),
            // cls_bpf puts a new filter before the others of its priority.
            Some(_) => others()
                .filter(|filter| filter.priority == 1)
                .all(|filter| filter.kind == "bpf" && filter.protocol == ETH_P_ALL)
                .then_some(1),
        },
        Order::Last => {
            let lowest = others().map(|filter| filter.priority).max().map_or(Some(LAST), |most| most.checked_add(1))?;
            (lowest.max(LAST)..=u16::MAX).find(|priority| free(*priority))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ETH_P_ALL, Filter, HANDLE, LAST, Order, priority};

    fn other(priority: u16, kind: &str) -> Filter {
        Filter { priority, protocol: ETH_P_ALL, handle: 1, kind: kind.into(), named: false, program_id: None }
    }

    #[test]
    fn the_last_is_behind_all_others() {
        assert_eq!(priority(&[], Order::Last), Some(LAST));
        assert_eq!(priority(&[other(7, "u32")], Order::Last), Some(LAST));
        assert_eq!(priority(&[other(LAST, "bpf")], Order::Last), Some(LAST + 1));
        assert_eq!(priority(&[other(u16::MAX, "bpf")], Order::Last), None);
        let ours = Filter { handle: HANDLE, program_id: Some(1), ..other(LAST, "bpf") };
        assert_eq!(priority(&[ours], Order::Last), Some(LAST + 1), "until the old one is gone");
    }

    #[test]
    fn the_first_is_before_all_others() {
        assert_eq!(priority(&[], Order::First), Some(1));
        assert_eq!(priority(&[other(2, "u32")], Order::First), Some(1));
        assert_eq!(priority(&[other(1, "u32")], Order::First), None);
        assert_eq!(priority(&[other(1, "bpf")], Order::First), Some(1));
    }
}
