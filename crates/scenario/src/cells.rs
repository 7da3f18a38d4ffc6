//! Access points beside each other, and who hears whom: from names, places and channels to pairs of nodes.

use crate::ScenarioError;
use crate::keys::{AccessKeys, AccessKind, CellKeys, HearingKeys, HostKeys, RoamKeys, ScenarioKeys};
use lasthop_keys::{Document, Path, Problem, key, nearest};
use lasthop_network::{Band, Cells, Hearing, HearingLevel, Roam, WifiConfig};
use lasthop_units::Time;

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
    /// The hosts, in order, as they are at the start.
    pub hosts: Vec<Place>,
    /// By roam, in the order of [`Scenario::roams`](crate::Scenario::roams): where it takes its host.
    pub moved: Vec<Place>,
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
        if keys.cells.len() < 2 {
            reader.without_roams()?;
        }
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
        let cells = Cells::in_full_hearing(access_points.len(), Vec::new());
        let mut layout = Self { cells, access_points, hosts, moved: Vec::new() };
        let powers = reader.powers(access)?;
        layout.cells = powers.of_all(&layout);
        layout.cells.capture_db = access.capture_db.unwrap_or(CAPTURE);
        if keys.cells.iter().any(|cell| cell.path_rtt_ms.is_some()) {
            layout.cells.path_rtts = keys.cells.iter().map(|cell| cell.path_rtt_ms).collect();
        }
        let levels = reader.by_blocks(names, &layout)?;
        for &(one, other, level) in &levels {
            layout.cells.set_level(one, other, level);
        }
        reader.check_each_link(names, &layout)?;
        reader.roams(names, (&powers, &levels), &mut layout)?;
        Ok(Some(layout))
    }

    /// The hosts, then the access points.
    pub fn nodes(&self) -> impl Iterator<Item = &Place> {
        self.hosts.iter().chain(&self.access_points)
    }
}

/// What says by places who hears whom; in dBm.
struct Powers {
    power: f64,
    sense: f64,
    hear: f64,
    obss_pd: Option<f64>,
    band: Band,
}

impl Powers {
    /// How two nodes reach each other, by their channels, and by their places if they have any.
    fn between(&self, place: &Place, beside: &Place) -> Hearing {
        if place.channel != beside.channel {
            return Hearing { level: HearingLevel::Misses, dbm: 0.0 };
        }
        let (Some(here), Some(there)) = (place.at_m, beside.at_m) else {
            return Hearing { level: HearingLevel::Hears, dbm: 0.0 };
        };
        let (along, across) = (here.0 - there.0, here.1 - there.1);
        let metres = (along * along + across * across).sqrt();
        let dbm = self.power - self.band.path_loss_db(metres);
        let is_foreign = place.cell != beside.cell;
        let senses = self.obss_pd.filter(|_| is_foreign).unwrap_or(self.sense);
        let level = match dbm {
            dbm if dbm >= self.hear.max(senses) => HearingLevel::Hears,
            dbm if dbm >= senses => HearingLevel::Senses,
            dbm if dbm >= NOISE => HearingLevel::Disturbed,
            _ => HearingLevel::Misses,
        };
        Hearing { level, dbm }
    }

    /// The same of all.
    fn of_all(&self, layout: &Layout) -> Cells {
        let of_host = layout.hosts.iter().map(|host| host.cell).collect();
        let mut cells = Cells::in_full_hearing(layout.access_points.len(), of_host);
        let nodes: Vec<_> = layout.nodes().collect();
        for (one, place) in nodes.iter().enumerate() {
            for (other, beside) in nodes[..one].iter().enumerate() {
                cells.set(one, other, self.between(place, beside));
            }
        }
        cells
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

    /// No host roams.
    fn without_roams(&self) -> Result<(), ScenarioError> {
        match self.keys.hosts.iter().position(|host| !host.roam.is_empty()) {
            None => Ok(()),
            Some(index) => {
                let path = Path::top(key!(ScenarioKeys, hosts)).index(index).key(key!(HostKeys, roam));
                let problem = "is about several access points of [[cells]], and there are none";
                Err(self.document.error(&path, problem, "no such block, or two [[cells]]"))
            }
        }
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
            let cell = match &host.cell {
                Some(name) => self.number_of(name, &cell_names, &path(key!(HostKeys, cell)))?,
                None if access_points.len() > 1 => {
                    let problem = "is not there, and there are several cells";
                    return Err(self.document.error(&path(key!(HostKeys, cell)), problem, cell_names.join(", ")));
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

    /// The number of the cell with this name.
    fn number_of(&self, name: &str, cell_names: &[&str], path: &Path) -> Result<usize, ScenarioError> {
        cell_names.iter().position(|cell| *cell == name).ok_or_else(|| {
            let did_you_mean = nearest(name, cell_names).map(|cell| format!("\"{cell}\""));
            let accepted = match cell_names.is_empty() {
                true => "no such key, or [[cells]]".to_owned(),
                false => cell_names.join(", "),
            };
            let problem = Problem { problem: format!("no cell is called \"{name}\""), accepted, did_you_mean };
            self.document.problem(path, problem)
        })
    }

    fn powers(&self, access: &AccessKeys) -> Result<Powers, ScenarioError> {
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
        Ok(Powers { power, sense, hear, obss_pd: access.obss_pd_dbm, band })
    }

    /// What `[[hearing]]` says of pairs of nodes, the last word last.
    fn by_blocks(
        &self,
        names: &[(Option<String>, Vec<String>)],
        layout: &Layout,
    ) -> Result<Vec<(usize, usize, HearingLevel)>, ScenarioError> {
        let mut levels = Vec::new();
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
            levels.extend(pairs.into_iter().map(|(one, other)| (one, other, block.level)));
        }
        Ok(levels)
    }

    /// What `[[hosts.roam]]` says, in the order of the associations.
    fn roams(
        &self,
        names: &[(Option<String>, Vec<String>)],
        (powers, levels): (&Powers, &[(usize, usize, HearingLevel)]),
        layout: &mut Layout,
    ) -> Result<(), ScenarioError> {
        let cell_names: Vec<String> = layout.access_points.iter().map(|cell| cell.name.clone()).collect();
        let cell_names: Vec<&str> = cell_names.iter().map(String::as_str).collect();
        // Each with its host and its path in the file.
        let mut roams: Vec<(Roam, &RoamKeys, Path)> = Vec::new();
        let mut first = 0;
        for (block, (host, (_, names))) in self.keys.hosts.iter().zip(names).enumerate() {
            let hosts = first..first + names.len();
            first = hosts.end;
            let (mut cell, mut since) = (layout.hosts.get(hosts.start).map_or(0, |place| place.cell), Time::ZERO);
            for (index, keys) in host.roam.iter().enumerate() {
                let path = Path::top(key!(ScenarioKeys, hosts)).index(block).key(key!(HostKeys, roam)).index(index);
                let at = Time::ZERO + keys.at_s;
                if at < since {
                    let problem = format!("{} is within the roam before it", at.as_secs_f64());
                    let accepted = format!("a number from {} on, when that one has ended", since.as_secs_f64());
                    return Err(self.document.error(&path.key(key!(RoamKeys, at_s)), problem, accepted));
                }
                let to = self.number_of(&keys.to, &cell_names, &path.key(key!(RoamKeys, to)))? as u16;
                if to == cell && !names.is_empty() {
                    let problem = format!("they are at \"{}\" already", keys.to);
                    return Err(self.document.error(
                        &path.key(key!(RoamKeys, to)),
                        problem,
                        "another of the [[cells]]",
                    ));
                }
                if keys.x_m.is_some() && layout.access_points[usize::from(to)].at_m.is_none() {
                    let problem = "is a place, and no cell has one";
                    let accepted = "no such key, or x_m of the [[cells]]";
                    return Err(self.document.error(&path.key(key!(RoamKeys, x_m)), problem, accepted));
                }
                let roam = |host| Roam { host, at, outage: keys.outage_ms, to, hearing: Vec::new() };
                roams.extend(hosts.clone().map(|host| (roam(host), keys, path.clone())));
                (cell, since) = (to, roam(0).associated());
            }
        }
        roams.sort_by_key(|(roam, ..)| roam.associated());
        let mut nodes: Vec<Place> = layout.nodes().cloned().collect();
        for (mut roam, keys, path) in roams {
            let host = roam.host;
            nodes[host].cell = roam.to;
            nodes[host].channel = layout.access_points[usize::from(roam.to)].channel;
            nodes[host].at_m = keys.x_m.map(|x| (x, keys.y_m.unwrap_or(0.0))).or(nodes[host].at_m);
            roam.hearing = nodes.iter().map(|other| powers.between(&nodes[host], other)).collect();
            for &(one, other, level) in levels.iter().filter(|(one, other, _)| *one == host || *other == host) {
                roam.hearing[if one == host { other } else { one }].level = level;
            }
            let own = roam.hearing[layout.hosts.len() + usize::from(roam.to)];
            if own.level != HearingLevel::Hears {
                let (key, how) = match nodes[host].at_m {
                    Some((x, y)) => (key!(RoamKeys, x_m), format!("at {:.0} dBm from {x}, {y}", own.dbm)),
                    None => (key!(RoamKeys, to), "by [[hearing]]".into()),
                };
                let problem = format!("{} and \"{}\" do not hear each other, {how}", nodes[host].name, keys.to);
                return Err(self.document.error(&path.key(key), problem, "a host that hears its access point"));
            }
            layout.moved.push(nodes[host].clone());
            layout.cells.roams.push(roam);
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
