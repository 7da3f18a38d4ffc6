//! Access points beside each other, and who hears whom: from names, places and channels to pairs of nodes.

use crate::ScenarioError;
use crate::keys::{AccessKeys, AccessKind, CellKeys, HearingKeys, HostKeys, ScenarioKeys};
use lasthop_keys::{Document, Path, Problem, key, nearest};
use lasthop_network::{Band, Cells, Hearing, HearingLevel, WifiConfig};

/// The name of an access point without a block.
const ONLY: &str = "access-point";
/// In dB, dBm and dBm.
const CAPTURE: f64 = 10.0;
const POWER: f64 = 20.0;
const SENSE: f64 = -82.0;
/// The reference of spatial reuse, in dBm (802.11ax-2021 §26.10.2.4).
const REUSE_POWER: f64 = 21.0;
/// Weaker than this, noise hides a transmission: -174 dBm/Hz over 20 MHz, and 7 dB of the receiver.
const NOISE: f64 = -94.0;

/// The access points of a scenario with `[[cells]]` or `[[hearing]]`, and where all are.
#[derive(Clone, PartialEq, Debug)]
pub struct Layout {
    /// The access points, in order.
    pub access_points: Vec<Place>,
    /// The hosts, in order.
    pub hosts: Vec<Place>,
    cells: Cells,
}

/// A node of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// The number of its access point.
    pub cell: u16,
    /// Where it is, in metres, if that is given.
    pub at_m: Option<(f64, f64)>,
    /// The number of its channel, if that is given.
    pub channel: Option<u16>,
}

impl Layout {
    /// Who hears whom.
    pub const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The layout of a checked scenario; `None` if all hear all, in one cell. `names`: of the hosts of each block.
    pub(crate) fn read(
        document: &Document,
        keys: &ScenarioKeys,
        names: &[(Option<String>, Vec<String>)],
    ) -> Result<Option<Self>, ScenarioError> {
        let reader = Reader { document, keys };
        let cells = Path::top(key!(ScenarioKeys, cells));
        let Some(access) = keys.access.as_ref().filter(|access| access.kind == AccessKind::Wifi) else {
            let path = if keys.cells.is_empty() { Path::top(key!(ScenarioKeys, hearing)) } else { cells };
            let is_used = !keys.cells.is_empty() || !keys.hearing.is_empty();
            let accepted = "no such block, or access.kind = \"wifi\"";
            return if is_used { Err(document.error(&path, "is for Wi-Fi", accepted)) } else { Ok(None) };
        };
        if keys.cells.is_empty() && keys.hearing.is_empty() {
            return reader.without_cells().map(|()| None);
        }
        let mut access_points = reader.access_points(access)?;
        let hosts = reader.hosts(&access_points, names)?;
        if access_points.is_empty() {
            access_points.push(Place { name: ONLY.into(), cell: 0, at_m: None, channel: None });
        }
        let mut layout = Self { cells: Cells::in_full_hearing(access_points.len(), Vec::new()), access_points, hosts };
        layout.cells = reader.by_places(access, &layout)?;
        reader.by_blocks(names, &mut layout)?;
        reader.check_each_link(names, &layout)?;
        Ok(Some(layout))
    }

    /// The hosts, then the access points.
    pub fn nodes(&self) -> impl Iterator<Item = &Place> {
        self.hosts.iter().chain(&self.access_points)
    }
}

struct Reader<'a> {
    document: &'a Document,
    keys: &'a ScenarioKeys,
}

impl Reader<'_> {
    /// Nothing belongs to a cell or has a place.
    fn without_cells(&self) -> Result<(), ScenarioError> {
        for (index, host) in self.keys.hosts.iter().enumerate() {
            let given = [(key!(HostKeys, cell), host.cell.is_some()), (key!(HostKeys, x_m), host.x_m.is_some())];
            if let Some((key, _)) = given.into_iter().find(|(_, given)| *given) {
                let path = Path::top(key!(ScenarioKeys, hosts)).index(index).key(key);
                return Err(self.document.error(
                    &path,
                    "is about [[cells]], and there are none",
                    "no such key, or [[cells]]",
                ));
            }
        }
        Ok(())
    }

    fn cell(&self, index: usize, key: &str) -> Path {
        Path::top(key!(ScenarioKeys, cells)).index(index).key(key)
    }

    fn access_points(&self, access: &AccessKeys) -> Result<Vec<Place>, ScenarioError> {
        let cells = &self.keys.cells;
        let has_places = cells.iter().any(|cell| cell.x_m.is_some());
        let has_channels = cells.iter().any(|cell| cell.channel.is_some());
        let usual = WifiConfig::new(access.standard);
        let band = access.band_ghz.filter(|_| access.standard.aggregates()).unwrap_or(usual.band);
        let width = access.channel_width_mhz.unwrap_or(usual.modulation.width).mhz();
        let mut places: Vec<Place> = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            if places.iter().any(|before| before.name == cell.name) {
                let path = self.cell(index, key!(CellKeys, name));
                return Err(self.document.error(
                    &path,
                    "is the name of another cell",
                    "a name for each cell of its own",
                ));
            }
            if has_places && cell.x_m.is_none() {
                let path = self.cell(index, key!(CellKeys, x_m));
                return Err(self.document.error(
                    &path,
                    "is not there, and other cells have places",
                    "a place for each, or for none",
                ));
            }
            if has_channels {
                self.check_channel(index, cell, band, width)?;
            }
            places.push(Place {
                name: cell.name.clone(),
                cell: index as u16,
                at_m: cell.x_m.map(|x| (x, cell.y_m.unwrap_or(0.0))),
                channel: cell.channel,
            });
        }
        Ok(places)
    }

    /// A channel is one of the band, and overlaps another one wholly or not at all.
    fn check_channel(&self, index: usize, cell: &CellKeys, band: Band, width: u32) -> Result<(), ScenarioError> {
        let path = self.cell(index, key!(CellKeys, channel));
        let Some(channel) = cell.channel else {
            return Err(self.document.error(
                &path,
                "is not there, and other cells have one",
                "a channel for each, or for none",
            ));
        };
        let part = |channel| part_of_band(band, width, channel);
        let Some(own) = part(channel) else {
            let accepted = match band {
                Band::Ghz2_4 => "1 to 13",
                Band::Ghz5 => "36, 40, .. 64, 100, 104, .. 144, 149, 153, .. 177",
            };
            return Err(self.document.error(&path, format!("{channel} is no channel at {band}"), accepted));
        };
        for before in &self.keys.cells[..index] {
            let Some(other) = before.channel.filter(|other| *other != channel) else { continue };
            if part(other).is_some_and(|other| overlap(own, other)) {
                let problem = format!("{channel} overlaps the {other} of \"{}\" in part", before.name);
                let accepted = format!("{other}, or one that does not overlap it over {width} MHz");
                return Err(self.document.error(&path, problem, accepted));
            }
        }
        Ok(())
    }

    fn hosts(
        &self,
        access_points: &[Place],
        names: &[(Option<String>, Vec<String>)],
    ) -> Result<Vec<Place>, ScenarioError> {
        let has_places = access_points.iter().any(|cell| cell.at_m.is_some());
        let mut places = Vec::new();
        for (index, (host, (_, names))) in self.keys.hosts.iter().zip(names).enumerate() {
            let path = |key: &str| Path::top(key!(ScenarioKeys, hosts)).index(index).key(key);
            let cell_names: Vec<_> = access_points.iter().map(|cell| cell.name.as_str()).collect();
            let accepted = || match cell_names.is_empty() {
                true => "no such key, or [[cells]]".to_owned(),
                false => cell_names.join(", "),
            };
            let cell = match &host.cell {
                Some(name) => match cell_names.iter().position(|cell| cell == name) {
                    Some(cell) => cell,
                    None => {
                        let did_you_mean = nearest(name, &cell_names).map(|cell| format!("\"{cell}\""));
                        let problem = Problem {
                            problem: format!("no cell is called \"{name}\""),
                            accepted: accepted(),
                            did_you_mean,
                        };
                        return Err(self.document.problem(&path(key!(HostKeys, cell)), problem));
                    }
                },
                None if access_points.len() > 1 => {
                    let problem = "is not there, and there are several cells";
                    return Err(self.document.error(&path(key!(HostKeys, cell)), problem, accepted()));
                }
                None => 0,
            };
            if host.x_m.is_some() != has_places {
                let (problem, accepted) = match has_places {
                    true => ("is not there, and the cells have places", "a place for each"),
                    false => ("is a place, and no cell has one", "no such key, or x_m of the [[cells]]"),
                };
                return Err(self.document.error(&path(key!(HostKeys, x_m)), problem, accepted));
            }
            places.extend(names.iter().map(|name| Place {
                name: name.clone(),
                cell: cell as u16,
                at_m: host.x_m.map(|x| (x, host.y_m.unwrap_or(0.0))),
                channel: access_points.get(cell).and_then(|cell| cell.channel),
            }));
        }
        Ok(places)
    }

    /// Levels by channels, and by places if there are any.
    fn by_places(&self, access: &AccessKeys, layout: &Layout) -> Result<Cells, ScenarioError> {
        let key = |key: &str| Path::top(key!(ScenarioKeys, access)).key(key);
        let sense = access.sense_dbm.unwrap_or(SENSE);
        let hear = access.hear_dbm.unwrap_or(sense);
        if hear < sense {
            let problem = format!("{hear} dBm is below sense_dbm = {sense}");
            return Err(self.document.error(&key(key!(AccessKeys, hear_dbm)), problem, "a number from sense_dbm on"));
        }
        let most = access.obss_pd_dbm.map_or(f64::INFINITY, |level| REUSE_POWER - (level + 82.0));
        let power = access.tx_power_dbm.unwrap_or(POWER.min(most));
        if power > most {
            let problem = format!("{power} dBm is more than obss_pd_dbm permits");
            let accepted = format!("at most {most} dBm: 21 less what obss_pd_dbm exceeds -82 by");
            return Err(self.document.error(&key(key!(AccessKeys, tx_power_dbm)), problem, accepted));
        }
        let usual = WifiConfig::new(access.standard);
        let band = access.band_ghz.filter(|_| access.standard.aggregates()).unwrap_or(usual.band);
        let of_host = layout.hosts.iter().map(|host| host.cell).collect();
        let mut cells = Cells::in_full_hearing(layout.access_points.len(), of_host);
        cells.capture_db = access.capture_db.unwrap_or(CAPTURE);
        let nodes: Vec<_> = layout.nodes().collect();
        for (one, place) in nodes.iter().enumerate() {
            for (other, beside) in nodes[..one].iter().enumerate() {
                if place.channel != beside.channel {
                    cells.set_level(one, other, HearingLevel::Misses);
                    continue;
                }
                let (Some(here), Some(there)) = (place.at_m, beside.at_m) else { continue };
                let (along, across) = (here.0 - there.0, here.1 - there.1);
                let metres = (along * along + across * across).sqrt();
                let dbm = power - band.path_loss_db(metres);
                let is_foreign = place.cell != beside.cell;
                let senses = access.obss_pd_dbm.filter(|_| is_foreign).unwrap_or(sense);
                let level = match dbm {
                    dbm if dbm >= hear.max(senses) => HearingLevel::Hears,
                    dbm if dbm >= senses => HearingLevel::Senses,
                    dbm if dbm >= NOISE => HearingLevel::Disturbed,
                    _ => HearingLevel::Misses,
                };
                cells.set(one, other, Hearing { level, dbm });
            }
        }
        Ok(cells)
    }

    /// What `[[hearing]]` says.
    fn by_blocks(&self, names: &[(Option<String>, Vec<String>)], layout: &mut Layout) -> Result<(), ScenarioError> {
        for (index, block) in self.keys.hearing.iter().enumerate() {
            let path = Path::top(key!(ScenarioKeys, hearing)).index(index).key(key!(HearingKeys, between));
            let [one, other] = &block.between;
            let (ones, others) = (self.called(&path, one, names, layout)?, self.called(&path, other, names, layout)?);
            let pairs = ones.iter().flat_map(|&one| others.iter().map(move |&other| (one, other)));
            let pairs: Vec<_> = pairs.filter(|(one, other)| one != other).collect();
            // A block may be left out by its count of 0.
            if pairs.is_empty() && !ones.is_empty() && !others.is_empty() {
                let problem = format!("\"{one}\" and \"{other}\" are one and the same");
                return Err(self.document.error(&path, problem, "two that differ, or a block of several hosts"));
            }
            for (one, other) in pairs {
                layout.cells.set_level(one, other, block.level);
            }
        }
        Ok(())
    }

    /// The nodes of this name.
    fn called(
        &self,
        path: &Path,
        name: &str,
        names: &[(Option<String>, Vec<String>)],
        layout: &Layout,
    ) -> Result<Vec<usize>, ScenarioError> {
        let mut before = 0;
        for (block, hosts) in names {
            if block.as_deref() == Some(name) {
                return Ok((before..before + hosts.len()).collect());
            }
            before += hosts.len();
        }
        if let Some(node) = layout.nodes().position(|node| node.name == name) {
            return Ok(vec![node]);
        }
        let blocks = names.iter().filter_map(|(block, _)| block.as_deref());
        let mut known: Vec<&str> = layout.access_points.iter().map(|cell| cell.name.as_str()).chain(blocks).collect();
        known
            .extend(names.iter().filter(|(block, _)| block.is_none()).flat_map(|(_, hosts)| hosts).map(String::as_str));
        let did_you_mean = nearest(name, &known).map(|known| format!("\"{known}\""));
        let problem = format!("nothing is called \"{name}\"");
        Err(self.document.problem(path, Problem { problem, accepted: known.join(", "), did_you_mean }))
    }

    /// A host and its access point hear each other.
    fn check_each_link(&self, names: &[(Option<String>, Vec<String>)], layout: &Layout) -> Result<(), ScenarioError> {
        let mut host = 0;
        for (block, (_, hosts)) in names.iter().enumerate() {
            for name in hosts {
                let cell = usize::from(layout.hosts[host].cell);
                let hearing = layout.cells.hearing(host, layout.hosts.len() + cell);
                if hearing.level != HearingLevel::Hears {
                    let cell = &layout.access_points[cell].name;
                    let hosts = Path::top(key!(ScenarioKeys, hosts)).index(block);
                    let (path, how) = match layout.hosts[host].at_m {
                        Some(_) => (hosts.key(key!(HostKeys, x_m)), format!("at {:.0} dBm", hearing.dbm)),
                        None => (hosts.key(key!(HostKeys, cell)), "by [[hearing]]".into()),
                    };
                    let problem = format!("{name} and its access point {cell} do not hear each other, {how}");
                    return Err(self.document.error(&path, problem, "a host that hears its access point"));
                }
                host += 1;
            }
        }
        Ok(())
    }
}

/// The first and the last of what a channel takes, in units of 5 MHz; `None` if there is no such channel.
fn part_of_band(band: Band, width: u32, channel: u16) -> Option<(u32, u32)> {
    let channel = u32::from(channel);
    match band {
        // The middle is 5 MHz a number; 22 MHz of DSSS take five of them, 40 MHz nine.
        Band::Ghz2_4 => {
            (1..=13).contains(&channel).then(|| (channel + 20, channel + 20 + if width > 20 { 8 } else { 4 }))
        }
        Band::Ghz5 => {
            let groups = [(36, 64), (100, 144), (149, 177)];
            let (first, _) = groups.into_iter().find(|(first, last)| (*first..=*last).contains(&channel))?;
            let channels = width / 20;
            let start = first + (channel - first) / (4 * channels) * 4 * channels;
            (channel - first).is_multiple_of(4).then_some((start, start + 4 * channels - 1))
        }
    }
}

fn overlap(one: (u32, u32), other: (u32, u32)) -> bool {
    one.0 <= other.1 && other.0 <= one.1
}
