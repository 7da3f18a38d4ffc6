//! Which cgroups matter, and to which rules: found anew at each look, for a restarted service has a new one.

use crate::error::Error;
use crate::kernel::Kernel;
use crate::{layout, probe};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which sockets something holds for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Those of these cgroups and of all below: a path below the root of cgroup2, as in /proc/PID/cgroup, or with that
    /// root. `*`, `?` and `[...]` stand for parts of a name. It is followed, as `excluded_cgroups` are. `None`: of any.
    pub cgroup: Option<PathBuf>,
    /// Those of this user: who made the socket, or accepted it. `None`: of any.
    pub uid: Option<u32>,
    /// They are left alone.
    pub leave: bool,
}

/// The result of [`Kernel::follow_cgroups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// The included, an excluded one or one of a rule has changed since the last call. [`Kernel::adopt`] applies it to
    /// the open sockets.
    pub changed: bool,
    /// Paths without a cgroup now.
    pub missing: Vec<PathBuf>,
    /// Rules that hold for no connection now, because more cgroups match them than there is room for.
    pub too_many: Vec<TooManyCgroups>,
}

/// A rule whose cgroups have no room in the kernel's map: [`Kernel::CGROUPS_MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyCgroups {
    /// The index of the rule in [`Options::rules`](crate::Options::rules).
    pub rule: usize,
    /// How many cgroups match it.
    pub cgroups: usize,
}

/// A cgroup's id in the kernel.
pub(crate) type CgroupId = u64;

/// What a cgroup is: [`layout::Cgroup`].
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) is: u32,
    pub(crate) rules: u32,
}

/// The cgroups that the options mean now.
pub(crate) struct Found {
    pub(crate) cgroups: BTreeMap<CgroupId, Meaning>,
    pub(crate) missing: Vec<PathBuf>,
    pub(crate) too_many: Vec<TooManyCgroups>,
}

/// Finds them.
pub(crate) fn find(only: Option<&Path>, excluded: &[PathBuf], rules: &[Rule]) -> Found {
    let mut found: BTreeMap<CgroupId, Meaning> = BTreeMap::new();
    let (mut missing, mut too_many) = (Vec::new(), Vec::new());
    let roles = only.into_iter().map(|path| (path, layout::LH_CGROUP_WITHIN));
    for (path, is) in roles.chain(excluded.iter().map(|path| (path.as_path(), layout::LH_CGROUP_EXCLUDED))) {
        match id_of(path) {
            Some(id) => found.entry(id).or_default().is |= is,
            None => missing.push(path.to_owned()),
        }
    }
    for (rule, pattern) in rules.iter().enumerate().filter_map(|(rule, of)| Some((rule, of.cgroup.as_ref()?))) {
        let ids = ids_like(pattern);
        if ids.is_empty() {
            missing.push(pattern.clone());
        }
        let more = ids.iter().filter(|id| !found.contains_key(id)).count();
        if found.len() + more > Kernel::CGROUPS_MOST {
            too_many.push(TooManyCgroups { rule, cgroups: ids.len() });
            continue;
        }
        ids.iter().for_each(|id| found.entry(*id).or_default().rules |= 1 << rule);
    }
    Found { cgroups: found, missing, too_many }
}

/// The bits of these rules.
pub(crate) fn bits_of(rules: &[Rule], which: impl Fn(&Rule) -> bool) -> Result<u32, Error> {
    if rules.len() > Kernel::RULES_MOST {
        return Err(Error::TooMuch { what: "rules", reason: format!("at most {}", Kernel::RULES_MOST) });
    }
    Ok(rules.iter().enumerate().filter(|(_, rule)| which(rule)).fold(0, |bits, (index, _)| bits | 1 << index))
}

/// The id of a cgroup: the inode number of its directory. `None`: there is no such directory.
fn id_of(path: &Path) -> Option<CgroupId> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_dir).map(|directory| directory.ino())
}

/// How many cgroups match a rule's pattern ([`Rule::cgroup`]) now.
pub fn cgroups_like(pattern: &Path) -> usize {
    ids_like(pattern).len()
}

fn ids_like(pattern: &Path) -> Vec<CgroupId> {
    let Some(root) = probe::cgroup2_root() else { return Vec::new() };
    let pattern = match pattern.starts_with(&root) {
        true => pattern.to_owned(),
        false => root.join(pattern.strip_prefix("/").unwrap_or(pattern)),
    };
    let paths = pattern.to_str().and_then(|pattern| glob::glob(pattern).ok());
    paths.into_iter().flatten().flatten().filter_map(|path| id_of(&path)).collect()
}

pub(crate) fn open_cgroup(path: &PathBuf) -> Result<File, Error> {
    File::open(path).map_err(|source| Error::Cgroup { path: path.clone(), source })
}
