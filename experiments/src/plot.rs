//! Pictures: panels with logarithmic y axes, up to three side by side, in one SVG file.

use std::ops::Range;
use std::path::Path;

use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::coord::{CoordTranslate, Shift};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::FontDesc;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A chart.
pub struct Panel {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub series: Vec<Series>,
}

/// Pairs (x, y) drawn as a line, as points, or as both.
///
/// Series of one name look the same in every panel. What a logarithmic axis cannot show (y ≤ 0, infinite or
/// no number) is left out; a line has a gap there.
pub struct Series {
    pub name: String,
    pub line: Vec<(f64, f64)>,
    pub points: Vec<(f64, f64)>,
}

/// Units of the picture in a pixel: the backend rounds coordinates to whole units, which must be small for
/// curves to be smooth.
pub const UNITS: u32 = 4;
/// Width and height of a panel, and the width of the legend.
const PANEL: (u32, u32) = (620 * UNITS, 560 * UNITS);
const LEGEND: u32 = 370 * UNITS;
const STROKE: u32 = 2 * UNITS;
/// Half the size of a marker.
const RADIUS: f64 = 5.0 * UNITS as f64;
const FONT: &str = "DejaVu Sans, Verdana, sans-serif";
pub const TITLE: u32 = 18 * UNITS;
pub const TEXT: u32 = 15 * UNITS;
pub const INK: RGBColor = RGBColor(40, 40, 40);

/// Okabe and Ito's colours, which most colour-blind readers can tell apart, without their yellow, which is
/// faint on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
];

/// Lengths of dashes and of the gaps between them, in pixels; no dash is a solid line.
const DASHES: [(u32, u32); 5] = [(0, 0), (14, 6), (5, 4), (24, 5), (2, 4)];

/// The strokes of markers as paths around the origin; y points down. All are hollow, so that points of
/// several series in one place can be told apart.
const MARKERS: [&[&[(f64, f64)]]; 8] = [
    &[&[(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8), (-0.8, -0.8)]],
    &[&[(0.0, -1.1), (1.0, 0.8), (-1.0, 0.8), (0.0, -1.1)]],
    &[&[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0), (0.0, -1.2)]],
    &[&[(-0.8, -0.8), (0.8, 0.8)], &[(-0.8, 0.8), (0.8, -0.8)]],
    &[&[(0.0, 1.1), (1.0, -0.8), (-1.0, -0.8), (0.0, 1.1)]],
    &[&[(-1.1, 0.0), (1.1, 0.0)], &[(0.0, -1.1), (0.0, 1.1)]],
    &[&[(-0.5, -1.0), (0.5, -1.0), (1.0, 0.0), (0.5, 1.0), (-0.5, 1.0), (-1.0, 0.0), (-0.5, -1.0)]],
    &[&[(-0.9, -0.7), (0.9, 0.7)], &[(-0.9, 0.7), (0.9, -0.7)], &[(0.0, -1.1), (0.0, 1.1)]],
];

/// What tells a series from others. The numbers of colours, dashes and markers have no common divisor, so
/// that only series 280 repeats the first.
struct Style {
    colour: RGBColor,
    dash: (u32, u32),
    marker: &'static [&'static [(f64, f64)]],
}

impl Style {
    fn new(index: usize) -> Self {
        Style {
            colour: COLOURS[index % COLOURS.len()],
            dash: DASHES[index % DASHES.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }

    fn line(&self, path: Vec<(i32, i32)>, area: &Area<'_>) -> Drawn {
        let style = self.colour.stroke_width(STROKE);
        match self.dash {
            (0, _) => area.draw(&PathElement::new(path, style)),
            (dash, gap) => area.draw(&DashedPathElement::new(path, dash * UNITS, gap * UNITS, style)),
        }
    }

    fn marker(&self, (x, y): (i32, i32), area: &Area<'_>) -> Drawn {
        let unit = |offset: f64| (RADIUS * offset).round() as i32;
        for stroke in self.marker {
            let path: Vec<_> = stroke.iter().map(|(dx, dy)| (x + unit(*dx), y + unit(*dy))).collect();
            area.draw(&PathElement::new(path, self.colour.stroke_width(STROKE)))?;
        }
        Ok(())
    }
}

/// A part of the picture.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Draws the panels and one legend for all, and writes the file; its directory is made if there is none.
pub fn write(panels: &[Panel], path: &Path) -> Result<(), String> {
    let (rows, columns) = grid(panels.len());
    let size = (PANEL.0 * columns as u32 + LEGEND, PANEL.1 * rows as u32);
    save(size, path, |root| draw(panels, root))
}

/// Writes what `draw` draws on white, width × height units, to a file; its directory is made if there is none.
pub fn save(size: (u32, u32), path: &Path, draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<(), String> {
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = root.fill(&WHITE).and_then(|()| draw(&root)).and_then(|()| root.present());
    drop(root);
    drawn.map_err(|error| format!("the picture cannot be drawn: {error}"))?;
    // The backend's size counts units; the view box, which comes later, keeps them.
    let attributes = |unit: u32| format!(r#"width="{}" height="{}""#, size.0 / unit, size.1 / unit);
    let svg = svg.replacen(&attributes(1), &attributes(UNITS), 1);
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let written = directory.map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(path, svg));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

/// The numbers of rows and columns of panels.
fn grid(panels: usize) -> (usize, usize) {
    let rows = panels.div_ceil(3);
    (rows, panels.div_ceil(rows.max(1)))
}

fn draw(panels: &[Panel], root: &Area<'_>) -> Drawn {
    let mut names: Vec<&str> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let (left, right) = root.split_horizontally(root.dim_in_pixel().0 - LEGEND);
    for (panel, area) in panels.iter().zip(left.split_evenly(grid(panels.len()))) {
        chart(panel, &names, &area)?;
    }
    legend(panels, &names, &right)
}

/// What a logarithmic axis can show.
fn visible((x, y): &(f64, f64)) -> bool {
    x.is_finite() && y.is_finite() && *y > 0.0
}

/// One panel.
fn chart(panel: &Panel, names: &[&str], area: &Area<'_>) -> Drawn {
    let shown = || panel.series.iter().flat_map(|s| s.line.iter().chain(&s.points)).filter(|p| visible(p));
    let (x, y) = (range(shown().map(|p| p.0)), range(shown().map(|p| p.1.log10())));
    let (bold, light) = ticks(&y);
    let y = (10f64.powf(y.start)..10f64.powf(y.end)).log_scale();
    let mut chart = ChartBuilder::on(area)
        .margin(12 * UNITS)
        .margin_top(44 * UNITS)
        .x_label_area_size(58 * UNITS)
        .y_label_area_size(84 * UNITS)
        .build_cartesian_2d(x, y.with_key_points(bold).with_light_points(light))?;
    chart
        .configure_mesh()
        .axis_style(INK.stroke_width(UNITS))
        .bold_line_style(INK.mix(0.2).stroke_width(UNITS))
        .light_line_style(INK.mix(0.07).stroke_width(UNITS))
        .set_all_tick_mark_size(5 * UNITS)
        .x_max_light_lines(1)
        .x_labels(8)
        .x_label_formatter(&|x| format!("{}", (x * 1e6).round() / 1e6))
        .y_label_formatter(&|y| power(*y))
        .label_style(font(TEXT))
        .axis_desc_style(font(TEXT))
        .x_desc(&panel.x_label)
        .y_desc(&panel.y_label)
        .draw()?;
    // Not as a caption: the backend cannot tell how wide a text is, a viewer can.
    let x = chart.plotting_area().get_x_axis_pixel_range();
    let middle = (x.start + x.end) / 2 - area.get_base_pixel().0;
    area.draw(&text(&panel.title, (middle, 24 * UNITS as i32), TITLE, HPos::Center))?;
    curves(panel, names, chart.plotting_area())
}

/// The lines of a panel, and above them its points.
fn curves<C>(panel: &Panel, names: &[&str], plane: &DrawingArea<SVGBackend<'_>, C>) -> Drawn
where
    C: CoordTranslate<From = (f64, f64)>,
{
    let index = |series: &Series| names.iter().position(|name| *name == series.name).unwrap_or_default();
    let styled = || panel.series.iter().map(|series| (series, Style::new(index(series))));
    let screen = plane.use_screen_coord();
    let place = |point: &(f64, f64)| plane.map_coordinate(point);
    for (series, style) in styled() {
        for run in series.line.split(|point| !visible(point)) {
            style.line(run.iter().map(place).collect(), &screen)?;
        }
    }
    for (series, style) in styled() {
        for point in series.points.iter().filter(|point| visible(point)) {
            style.marker(place(point), &screen)?;
        }
    }
    Ok(())
}

/// The names of the series, with a piece of line and a marker for each.
fn legend(panels: &[Panel], names: &[&str], area: &Area<'_>) -> Drawn {
    let unit = |pixels: i32| pixels * UNITS as i32;
    for (index, name) in names.iter().enumerate() {
        let (style, y) = (Style::new(index), unit(60 + 30 * index as i32));
        let series = || panels.iter().flat_map(|panel| &panel.series).filter(|series| series.name == *name);
        if series().any(|series| !series.line.is_empty()) {
            style.line(vec![(unit(4), y), (unit(52), y)], area)?;
        }
        if series().any(|series| !series.points.is_empty()) {
            style.marker((unit(28), y), area)?;
        }
        area.draw(&text(name, (unit(62), y), TEXT, HPos::Left))?;
    }
    Ok(())
}

pub fn text(text: &str, place: (i32, i32), size: u32, anchor: HPos) -> Text<'_, (i32, i32), &str> {
    Text::new(text, place, font(size).pos(Pos::new(anchor, VPos::Center)))
}

pub fn font(size: u32) -> TextStyle<'static> {
    // The backend divides sizes by 1.24.
    FontDesc::from((FONT, 1.24 * f64::from(size))).color(&INK)
}

/// From the least to the largest value, and a little further; from 0 to 1 if there is none.
fn range(values: impl Iterator<Item = f64>) -> Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, -f64::INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    if least > most {
        return 0.0..1.0;
    }
    let space = if most > least { 0.04 * (most - least) } else { 0.5 };
    least - space..most + space
}

/// Labelled and other grid lines of a logarithmic axis that spans these powers of ten: the powers, or 1, 2
/// and 5 times the powers on a short axis; the other multiples.
fn ticks(exponents: &Range<f64>) -> (Vec<f64>, Vec<f64>) {
    let decades = exponents.end - exponents.start;
    let step = (decades / 8.0).ceil().max(1.0) as i32;
    let digits: &[i32] = if decades < 2.0 { &[1, 2, 5] } else { &[1] };
    let powers = exponents.start.floor() as i32..=exponents.end.ceil() as i32;
    let all = powers.flat_map(|power| (1..10).map(move |digit| (power, digit)));
    let inside =
        all.filter(|(power, digit)| exponents.contains(&(f64::from(*power) + f64::from(*digit).log10())));
    let (bold, light): (Vec<_>, Vec<_>) =
        inside.partition(|(power, digit)| power.rem_euclid(step) == 0 && digits.contains(digit));
    let values = |ticks: Vec<(i32, i32)>| ticks.iter().map(|(p, d)| f64::from(*d) * 10f64.powi(*p)).collect();
    (values(bold), values(light))
}

/// A tick's value: 0.02, 1, 50, 10⁻⁵, 2·10⁷.
pub fn power(value: f64) -> String {
    let text = format!("{value:.0e}");
    let (digit, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent = exponent.parse().unwrap_or(0i32);
    if (-2..=2).contains(&exponent) {
        return format!("{:.*}", (-exponent).max(0) as usize, value);
    }
    let raise = |c: char| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    };
    let raised: String = exponent.to_string().chars().map(raise).collect();
    let factor = if digit == "1" { String::new() } else { format!("{digit}·") };
    format!("{factor}10{raised}")
}
