//! The compiled programs: selected for a mode, configured, loaded.

use crate::error::{Error, io_error};
use crate::layout::{self, ControlOps, Name, Settings};
use crate::log;
use crate::mode::Mode;
use libbpf_rs::btf::types::{Func, FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, TypeId};
use libbpf_rs::{
    AsRawLibbpf, Iter, Link, Map, MapCore, MapFlags, Object, ObjectBuilder, OpenMapMut, OpenObject, OpenProgramMut,
    ReferencesType,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::OnceLock;
use zerocopy::{FromBytes, Immutable, IntoBytes};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/lasthop.bpf.o"));

/// The map of our `struct tcp_congestion_ops`.
pub(crate) const CONTROL_OPS: &str = "lasthop";

/// The map that marks the sockets that have changed.
pub(crate) const MARKED: &str = "marked";
/// The map of each socket's former control.
pub(crate) const FORMER: &str = "former";
/// The program that lowers the window of segments that leave.
pub(crate) const BOUND_RECEIVED: &str = "bound_received";
/// The walk that removes all clamps.
pub(crate) const UNCLAMP: &str = "unclamp_existing";

/// Optional kernel features that change the set of programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    /// The tracepoint `tcp_cong_state_set` is there (since 5.19).
    pub(crate) state_changes: bool,
    /// `cong_control` is told the ACK and its flags (since 6.10).
    pub(crate) flags_told: bool,
    /// A socket's cgroup can be read (since 5.16).
    pub(crate) cgroups_told: bool,
    /// A program can be attached where packets leave, by a link (since 6.6).
    pub(crate) packets_seen: bool,
    /// Connections that open, get a segment or send one again are reported, and sockets with our mark can be walked (since
    /// 5.9). Without, each walk is of all sockets.
    pub(crate) marks: bool,
    /// A transmission with nothing in flight is an event by itself, `cwnd_event_tx_start` (seen in 7.2).
    pub(crate) start_told: bool,
}

impl Variant {
    /// From the running kernel's BTF.
    pub(crate) fn of(kernel: &Btf<'_>) -> Self {
        let state_changes = kernel.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>("btf_trace_tcp_cong_state_set");
        let cgroup = kernel.type_by_name::<Struct<'_>>("sock_cgroup_data");
        let cgroups_told =
            cgroup.is_some_and(|data| data.iter().any(|member| member.name == Some(OsStr::new("cgroup"))));
        let flags_told = cong_control_arguments(kernel) != Some(2);
        let packets_seen = kernel.type_by_name::<Struct<'_>>("tcx_link").is_some();
        let start_told = control_member(kernel, "cwnd_event_tx_start").is_some();
        let reported = ["inet_sock_set_state", "tcp_probe", "tcp_retransmit_skb"].into_iter().all(|name| {
            kernel.type_by_name::<libbpf_rs::btf::types::Typedef<'_>>(&format!("btf_trace_{name}")).is_some()
        });
        let marks = reported && walks_maps(kernel);
        Self { state_changes: state_changes.is_some(), flags_told, cgroups_told, packets_seen, marks, start_told }
    }
}

/// Whether the kernel walks the sockets of a map. Some that can refuse it, with EPERM, where they restrict what programs write.
pub(crate) fn walks_maps(kernel: &Btf<'_>) -> bool {
    static WALKS: OnceLock<bool> = OnceLock::new();
    let Some(target) = kernel.type_by_name::<Func<'_>>("bpf_iter_bpf_sk_storage_map") else { return false };
    let target = u32::from(target.type_id());
    *WALKS.get_or_init(|| {
        // r0 = 0; exit
        let program = [0xb7_u64.to_le(), 0x95_u64.to_le()];
        let mut options = libbpf_sys::bpf_prog_load_opts {
            sz: size_of::<libbpf_sys::bpf_prog_load_opts>() as u64,
            expected_attach_type: libbpf_sys::BPF_TRACE_ITER,
            attach_btf_id: target,
            ..Default::default()
        };
        // SAFETY: two instructions, two strings that end in zero, and options whose size is told; nothing is kept.
        #[allow(unsafe_code)]
        let loaded = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_TRACING,
                c"lasthop_probe".as_ptr(),
                c"GPL".as_ptr(),
                program.as_ptr().cast(),
                2,
                &raw mut options,
            )
        };
        // SAFETY: a descriptor that the kernel has just given, and nobody else has.
        #[allow(unsafe_code)]
        let program = (loaded >= 0).then(|| unsafe { OwnedFd::from_raw_fd(loaded) });
        program.is_some()
    })
}

/// How many arguments the kernel passes to `cong_control`.
fn cong_control_arguments(kernel: &Btf<'_>) -> Option<usize> {
    let pointer = kernel.type_by_id::<Ptr<'_>>(control_member(kernel, "cong_control")?)?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.iter().count())
}

/// The type of a member of the kernel's `struct tcp_congestion_ops`.
fn control_member(kernel: &Btf<'_>, name: &str) -> Option<TypeId> {
    let ops = kernel.type_by_name::<Struct<'_>>("tcp_congestion_ops")?;
    Some(ops.iter().find(|member| member.name == Some(OsStr::new(name)))?.ty)
}

/// Whether a program belongs to a mode.
fn wanted(program: &str, mode: Mode, variant: Variant) -> bool {
    let control = mode == Mode::Control;
    match program {
        "sample" | "look_at_all" => true,
        "on_state_change" => variant.state_changes,
        "look_at_marked" | "unmark_told" | "on_segment" | "on_retransmission" | "on_connection" => variant.marks,
        "adopt_new" | "adopt_existing" | "release_existing" => control,
        BOUND_RECEIVED => variant.packets_seen && matches!(mode, Mode::Control | Mode::Clamp),
        "clamp_new" | "clamp_existing" | UNCLAMP => mode == Mode::Clamp,
        "lasthop_cong_control" => control && variant.flags_told,
        "lasthop_cong_control_old" => control && !variant.flags_told,
        _ => control, // the rest of the congestion control
    }
}

/// Loads the programs of `mode`; attaches nothing yet.
pub(crate) fn load(mode: Mode, variant: Variant, settings: &Settings) -> Result<Object, Error> {
    log::start();
    configure(mode, variant, settings).and_then(OpenObject::load).map_err(Error::load)
}

/// Loads the programs of `mode`, attaches those for the cgroup, and undoes it all. Nothing is registered, and the
/// programs are for namespace number 0, which does not exist.
pub(crate) fn attempt(mode: Mode, variant: Variant, cgroup: &Path) -> Result<(), Error> {
    let object = load(mode, variant, &Settings::default())?;
    if mode == Mode::Control {
        let source = File::open(cgroup).map_err(|source| Error::Cgroup { path: cgroup.into(), source })?;
        let link = program(&object, "adopt_new").attach_cgroup(source.as_raw_fd());
        drop(link.map_err(Error::attach_to_cgroup)?);
    }
    Ok(())
}

/// Loads only the walk that removes clamps, for the sockets in another loader's `former` map.
pub(crate) fn load_unclamp(former: BorrowedFd<'_>) -> libbpf_rs::Result<Object> {
    let variant = Variant {
        state_changes: false,
        flags_told: true,
        cgroups_told: true,
        packets_seen: false,
        marks: false,
        start_told: false,
    };
    let mut object = configure(Mode::Clamp, variant, &Settings::default())?;
    for mut program in object.progs_mut() {
        let wanted = program.name() == UNCLAMP;
        program.set_autoload(wanted);
    }
    let mut maps = object.maps_mut();
    maps.find(|map| map.name() == FORMER).expect("a map of what sockets had").reuse_fd(former)?;
    drop(maps);
    object.load()
}

fn configure(mode: Mode, variant: Variant, settings: &Settings) -> libbpf_rs::Result<OpenObject> {
    let mut object = ObjectBuilder::default().name("lasthop")?.open_memory(OBJECT)?;
    let mut old_cong_control = 0;
    for mut program in object.progs_mut() {
        let name = program.name().to_string_lossy().into_owned();
        if name == "lasthop_cong_control_old" {
            old_cong_control = unloaded(&mut program);
        }
        // libbpf decides by itself about the programs of a struct_ops map, from the references in it
        if !name.starts_with("lasthop_") {
            program.set_autoload(wanted(&name, mode, variant));
        }
    }
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        match name.as_str() {
            ".rodata.settings" => map.set_initial_value(settings.as_bytes())?,
            CONTROL_OPS => {
                map.set_autocreate(mode == Mode::Control)?;
                fill_in_control(&mut map, settings.name, variant, old_cong_control)?;
            }
            _ => {}
        }
    }
    Ok(object)
}

pub(crate) fn unexpected(what: &str) -> libbpf_rs::Error {
    libbpf_rs::Error::from(io::Error::other(format!("the compiled programs are not as expected: {what}")))
}

/// Names a congestion control before it is loaded, and chooses its functions for this kernel; `old_cong_control`: that
/// for each ACK on a kernel before 6.10.
pub(crate) fn fill_in_control(
    map: &mut OpenMapMut<'_>,
    name: Name,
    variant: Variant,
    old_cong_control: usize,
) -> libbpf_rs::Result<()> {
    let ops = map.initial_value_mut().filter(|ops| ops.len() == size_of::<ControlOps>());
    let ops = ops.ok_or_else(|| unexpected("struct_ops"))?;
    let mut fill = |at: usize, bytes: &[u8]| ops[at..at + bytes.len()].copy_from_slice(bytes);
    fill(offset_of!(ControlOps, name), name.as_bytes());
    // before loading, libbpf keeps a pointer to its own `bpf_program` in place of the function
    if !variant.flags_told {
        fill(offset_of!(ControlOps, cong_control), old_cong_control.as_bytes());
    }
    // and loads no program that it finds in no place
    let unused = match variant.start_told {
        true => offset_of!(ControlOps, cwnd_event),
        false => offset_of!(ControlOps, cwnd_event_tx_start),
    };
    fill(unused, 0usize.as_bytes());
    Ok(())
}

/// The placeholder of a program in a struct of functions until loading.
pub(crate) fn unloaded(program: &mut OpenProgramMut<'_>) -> usize {
    program.as_libbpf_object().as_ptr() as usize
}

/// The whole output of an iterator, in the calling thread's network namespace.
pub(crate) fn read_all(link: &Link) -> io::Result<Vec<u8>> {
    let mut iterator = Iter::new(link).map_err(|error| io_error(&error))?;
    let mut bytes = Vec::new();
    iterator.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Hands the output of an iterator, in the calling thread's network namespace, to `each` in pieces of `piece` bytes.
pub(crate) fn read_each(link: &Link, piece: usize, mut each: impl FnMut(&[u8])) -> io::Result<()> {
    let mut iterator = Iter::new(link).map_err(|error| io_error(&error))?;
    // The kernel's buffer has eight pages.
    let mut bytes = vec![0; 1 << 16];
    let mut kept = 0;
    loop {
        match iterator.read(&mut bytes[kept..]) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                let end = kept + read;
                bytes[..end].chunks_exact(piece).for_each(&mut each);
                kept = end % piece;
                bytes.copy_within(end - kept..end, 0);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Attaches a program to the packets that leave by an interface of the calling thread's network namespace.
pub(crate) fn attach_leaving(program: &libbpf_rs::ProgramMut<'_>, interface_index: u32) -> libbpf_rs::Result<Link> {
    let index = i32::try_from(interface_index).map_err(|_| unexpected("an index has 31 bits"))?;
    // First: a program before ours that lets a packet pass would end the chain.
    let options = libbpf_sys::bpf_tcx_opts {
        sz: size_of::<libbpf_sys::bpf_tcx_opts>() as u64,
        flags: libbpf_sys::BPF_F_BEFORE,
        ..Default::default()
    };
    let program = program.as_libbpf_object().as_ptr();
    // SAFETY: the program is loaded and lives as long as the call; libbpf reads `sz` bytes of `options`.
    #[allow(unsafe_code)]
    let link = unsafe { libbpf_sys::bpf_program__attach_tcx(program, index, &raw const options) };
    let link = NonNull::new(link).ok_or_else(|| libbpf_rs::Error::from(io::Error::last_os_error()))?;
    // SAFETY: libbpf has just made this link, and nobody else has it.
    #[allow(unsafe_code)]
    Ok(unsafe { Link::from_ptr(link) })
}

/// The program of that name.
///
/// # Panics
/// If there is none: the names are those of our own source.
pub(crate) fn program<'o>(object: &'o Object, name: &str) -> libbpf_rs::ProgramMut<'o> {
    object.progs_mut().find(|program| program.name() == OsStr::new(name)).unwrap_or_else(|| panic!("a program {name}"))
}

/// The map, or section, of that name.
///
/// # Panics
/// If there is none: the names are those of our own source.
pub(crate) fn map<'o>(object: &'o Object, name: &str) -> Map<'o> {
    object.maps().find(|map| map.name() == OsStr::new(name)).unwrap_or_else(|| panic!("a map {name}"))
}

/// The only value of its map or section.
pub(crate) fn read<T: FromBytes>(map: &impl MapCore) -> libbpf_rs::Result<T> {
    let bytes = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
    layout::first(&bytes).ok_or_else(|| unexpected("a section is shorter than its value"))
}

/// Writes the value that [`read`] reads.
pub(crate) fn write<T: IntoBytes + Immutable>(map: &impl MapCore, value: &T) -> libbpf_rs::Result<()> {
    map.update(&0u32.to_ne_bytes(), value.as_bytes(), MapFlags::ANY)
}
