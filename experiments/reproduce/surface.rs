//! Pictures of functions of two numbers, in bands of one colour each.

use std::ops::Range;
use std::path::Path;

use experiments::plot::{self, Area, Drawn, INK, TEXT, TITLE, UNITS};
use ndarray::Array2;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// A function on a grid of cells.
pub struct Surface {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub x: Range<f64>,
    pub y: Range<f64>,
    /// The values of cells: rows along y, from its start.
    pub values: Array2<f64>,
    pub bands: Bands,
}

/// Bands of values: below the limits, between them, above them.
#[derive(Clone)]
pub struct Bands {
    pub name: &'static str,
    pub limits: Range<f64>,
    /// The height of a band.
    pub step: f64,
    /// Whether values are decimal logarithms of what is shown.
    pub logarithms: bool,
}

impl Bands {
    fn count(&self) -> usize {
        ((self.limits.end - self.limits.start) / self.step).round() as usize + 2
    }

    fn of(&self, value: f64) -> usize {
        let above = ((value - self.limits.start) / self.step).floor() + 1.0;
        above.clamp(0.0, (self.count() - 1) as f64) as usize
    }

    /// What the value below a band that is not the first is called; whole powers of ten alone.
    fn edge(&self, band: usize) -> Option<String> {
        let edge = self.limits.start + self.step * (band as f64 - 1.0);
        match self.logarithms {
            true => (edge.fract() == 0.0).then(|| plot::power(10f64.powf(edge))),
            false => Some(format!("{}", (edge * 1e6).round() / 1e6)),
        }
    }

    fn colour(&self, band: usize) -> RGBColor {
        colour(band as f64 / (self.count() - 1) as f64)
    }
}

/// Colours that grow lighter from 0 to 1, in print too (viridis).
fn colour(t: f64) -> RGBColor {
    const STOPS: [(f64, f64, f64); 5] = [
        (68.0, 1.0, 84.0),
        (59.0, 82.0, 139.0),
        (33.0, 145.0, 140.0),
        (94.0, 201.0, 98.0),
        (253.0, 231.0, 37.0),
    ];
    let place = t * (STOPS.len() - 1) as f64;
    let k = (place as usize).min(STOPS.len() - 2);
    let (a, b, part) = (STOPS[k], STOPS[k + 1], place - k as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * part).round() as u8;
    RGBColor(mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2))
}

/// Width and height of a panel, and the width of the scale of colours.
const PANEL: (u32, u32) = (460 * UNITS, 400 * UNITS);
const SCALE: u32 = 190 * UNITS;
/// Panels beside each other, which share the bands of the first.
const ROW: usize = 3;

/// Draws rows of surfaces.
pub fn write(surfaces: &[Surface], path: &Path) -> Result<(), String> {
    let rows: Vec<&[Surface]> = surfaces.chunks(ROW).collect();
    let width = PANEL.0 * surfaces.len().min(ROW) as u32;
    plot::save((width + SCALE, PANEL.1 * rows.len() as u32), path, |root| {
        for (row, area) in rows.iter().zip(root.split_evenly((rows.len(), 1))) {
            let (panels, right) = area.split_horizontally(width);
            for (surface, area) in row.iter().zip(panels.split_evenly((1, surfaces.len().min(ROW)))) {
                panel(surface, &area)?;
            }
            scale(&row[0].bands, &right)?;
        }
        Ok(())
    })
}

fn panel(surface: &Surface, area: &Area<'_>) -> Drawn {
    let mut chart = ChartBuilder::on(area)
        .margin(12 * UNITS)
        .margin_top(44 * UNITS)
        .x_label_area_size(52 * UNITS)
        .y_label_area_size(58 * UNITS)
        .build_cartesian_2d(surface.x.clone(), surface.y.clone())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .axis_style(INK.stroke_width(UNITS))
        .set_all_tick_mark_size(5 * UNITS)
        .x_labels(8)
        .x_label_formatter(&|x| format!("{x}"))
        .y_labels(6)
        .label_style(plot::font(TEXT))
        .axis_desc_style(plot::font(TEXT))
        .x_desc(&surface.x_label)
        .y_desc(&surface.y_label)
        .draw()?;
    for run in runs(surface) {
        chart.plotting_area().draw(&run)?;
    }
    let x = chart.plotting_area().get_x_axis_pixel_range();
    let middle = (x.start + x.end) / 2 - area.get_base_pixel().0;
    area.draw(&plot::text(&surface.title, (middle, 24 * UNITS as i32), TITLE, HPos::Center))
}

/// Rectangles of one colour. Each reaches one cell further up and to the right than its cells, under those that come
/// later, so that no seam is left between neighbours.
fn runs(surface: &Surface) -> Vec<Rectangle<(f64, f64)>> {
    let (rows, columns) = surface.values.dim();
    let along = |range: &Range<f64>, cell: usize, of: usize| {
        range.start + (range.end - range.start) * cell.min(of) as f64 / of as f64
    };
    let mut runs = Vec::new();
    for (row, values) in surface.values.rows().into_iter().enumerate() {
        let bands: Vec<usize> = values.iter().map(|value| surface.bands.of(*value)).collect();
        let mut start = 0;
        for run in bands.chunk_by(|a, b| a == b) {
            let end = start + run.len();
            let corners = [
                (along(&surface.x, start, columns), along(&surface.y, row, rows)),
                (along(&surface.x, end + 1, columns), along(&surface.y, row + 2, rows)),
            ];
            runs.push(Rectangle::new(corners, surface.bands.colour(run[0]).filled()));
            start = end;
        }
    }
    runs
}

/// The colours of the bands, with the values between them.
fn scale(bands: &Bands, area: &Area<'_>) -> Drawn {
    let unit = |pixels: f64| (pixels * f64::from(UNITS)).round() as i32;
    let height = 280.0 / bands.count() as f64;
    let bottom = |band: usize| unit(350.0 - height * band as f64);
    area.draw(&plot::text(bands.name, (unit(20.0), unit(40.0)), TEXT, HPos::Left))?;
    for band in 0..bands.count() {
        // Up to the top, under those that come later: no seams.
        let corners = [(unit(20.0), bottom(bands.count())), (unit(50.0), bottom(band))];
        area.draw(&Rectangle::new(corners, bands.colour(band).filled()))?;
        if let Some(edge) = (band > 0).then(|| bands.edge(band)).flatten() {
            area.draw(&plot::text(&edge, (unit(58.0), bottom(band)), TEXT, HPos::Left))?;
        }
    }
    Ok(())
}
