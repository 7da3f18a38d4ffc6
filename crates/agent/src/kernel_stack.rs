//! The stack of this machine: the programs of [`kernel`], in the best mode that this kernel allows.

use crate::config::{Config, Mode};
use crate::interface::Interface;
use crate::stack::{Loaded, SocketSample, Stack, StateChange};
use anyhow::{Context, Result, bail};
use control::bound::Bound;
use kernel::{Kernel, Options};
use tracing::{info, warn};
use units::Span;

struct KernelStack(Kernel);

/// Loads the programs for `interface`. Where the kernel cannot do what was asked for, one warning says what is missing,
/// and what is done instead.
pub(crate) fn load(config: &Config, interface: &Interface, wanted: Mode) -> Result<Loaded> {
    let support = kernel::probe();
    let wanted_of_kernel = match wanted {
        Mode::Control => kernel::Mode::Control,
        Mode::Observe | Mode::Advise => kernel::Mode::Observe,
    };
    let mut modes = [kernel::Mode::Control, kernel::Mode::Clamp, kernel::Mode::Observe].into_iter();
    let best = modes
        .by_ref()
        .skip_while(|mode| *mode != wanted_of_kernel)
        .find(|mode| support.missing_for(*mode).next().is_none());
    let missing = || support.missing_for(wanted_of_kernel).collect::<Vec<_>>().join("; ");
    let Some(mut mode) = best else { bail!("this kernel does not let us see its sockets: {}", missing()) };
    let mut reason = (mode != wanted_of_kernel).then(missing);
    let kernel = loop {
        match Kernel::load(&options(config, interface, mode)?) {
            Ok(kernel) => break kernel,
            // The probe has found everything, and yet the kernel refuses: the next lesser mode may still work.
            Err(error @ (kernel::Error::Load { .. } | kernel::Error::Attach { .. })) => {
                let Some(lesser) = modes.next() else { return Err(error).context(loading(interface)) };
                reason = Some(error.to_string());
                mode = lesser;
            }
            Err(error) => return Err(error).context(loading(interface)),
        }
    };
    let lesser = match (wanted, mode) {
        (Mode::Control, kernel::Mode::Observe | kernel::Mode::Nothing) => Mode::Advise,
        _ => wanted,
    };
    if let Some(reason) = reason {
        let instead = match mode {
            kernel::Mode::Clamp => "windows are bounded from above only, and sockets keep their own congestion control",
            _ => "nothing is applied: what would be is only said and recorded",
        };
        warn!("the kernel cannot do all that mode {wanted} needs, so {instead}. What is missing: {reason}");
    }
    Ok(Loaded { stack: Box::new(KernelStack(kernel)), mode: lesser })
}

fn loading(interface: &Interface) -> String {
    format!("cannot load the programs for interface {} into the kernel", interface.name)
}

fn options(config: &Config, interface: &Interface, mode: kernel::Mode) -> Result<Options> {
    let found = Options::new(interface.index, mode).with_context(|| loading(interface))?;
    Ok(Options {
        cgroup: config.cgroup.clone().unwrap_or(found.cgroup),
        excluded_cgroups: config.excluded_cgroups.clone(),
        leave: config.leave.clone(),
        ..found
    })
}

impl Stack for KernelStack {
    fn congestion_control(&self) -> Option<&str> {
        Some(self.0.name()).filter(|name| !name.is_empty())
    }

    fn adopt(&mut self) -> Result<u64> {
        let kernel::Adopted { adopted, left, restored, failed, .. } = self.0.adopt()?;
        if adopted + restored + failed > 0 {
            info!(
                "open sockets: {adopted} taken over, {left} left alone, {restored} given back, {failed} refused by \
                 the kernel"
            );
        }
        Ok(adopted)
    }

    fn sample(&mut self) -> Result<Vec<SocketSample>> {
        Ok(self.0.sample()?)
    }

    fn poll_state_changes(&mut self, each: &mut dyn FnMut(StateChange)) -> Result<u64> {
        Ok(self.0.poll_state_changes(each)?)
    }

    fn set_bounds(&mut self, new_flows: Option<Bound>, flows: &[(u64, Option<Bound>)], lease: Span) -> Result<()> {
        let kernel_bound = |Bound { min_segments, max_segments }| kernel::Bound { min_segments, max_segments };
        let flows: Vec<_> = flows.iter().map(|(cookie, bound)| (*cookie, bound.map(kernel_bound))).collect();
        Ok(self.0.set_bounds(new_flows.map(kernel_bound), &flows, lease)?)
    }

    fn release(&mut self) -> Result<u64> {
        let kernel::Released { restored, failed } = self.0.release()?;
        if failed > 0 {
            warn!("{failed} sockets would not take their own congestion control back: they run plain CUBIC");
        }
        Ok(restored)
    }
}
