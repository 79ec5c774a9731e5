//! Draws the CPU time of each contender as bars.

use crate::Contender;
use std::fmt::Write;

const ROW: usize = 34;
const LABELS: usize = 320;
const BARS: f64 = 400.0;
const WIDTH: usize = 800;

/// Returns the plot as an SVG that is readable on light and on dark pages.
pub(crate) fn svg(contenders: &[Contender]) -> String {
    let cpu = |contender: &Contender| contender.median(|round| round.cpu);
    let longest = contenders.iter().map(cpu).fold(0.1, f64::max);
    let height = 44 + ROW * contenders.len();
    let mut svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' font-family='sans-serif' \
         font-size='13'>\n<rect width='{WIDTH}' height='{height}' rx='6' fill='#ffffff'/>\n\
         <text x='14' y='24' font-weight='bold' fill='#1f2937'>CPU seconds per million spans (less is better)</text>\n"
    );
    for (row, contender) in contenders.iter().enumerate() {
        let y = 40 + ROW * row;
        let width = BARS * cpu(contender) / longest;
        let colour = if contender.name.starts_with("Faultline") { "#2563eb" } else { "#9ca3af" };
        let name = contender.name.replace('`', "").replace('>', "&gt;");
        let (middle, value) = (y + 18, cpu(contender));
        // Writing to a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x='14' y='{middle}' fill='#1f2937'>{name}</text>\
             <rect x='{LABELS}' y='{}' width='{width:.0}' height='20' fill='{colour}'/>\
             <text x='{:.0}' y='{middle}' fill='#1f2937'>{value:.2}</text>",
            y + 3,
            LABELS as f64 + width + 8.0,
        );
    }
    svg + "</svg>\n"
}
