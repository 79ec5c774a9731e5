//! The layout of panels: side by side in order, in rows that are as high as their highest panel.

/// The number of grid columns of a dashboard.
pub(super) const COLUMNS: u64 = 24;

/// A position and a size on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GridPosition {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
}

/// Returns the positions of panels with these widths and heights.
pub(super) fn positions(sizes: impl Iterator<Item = [u64; 2]>) -> Vec<GridPosition> {
    let (mut x, mut y, mut highest) = (0, 0, 0);
    let position = |[width, height]: [u64; 2]| {
        if x + width > COLUMNS {
            (x, y, highest) = (0, y + highest, 0);
        }
        let position = GridPosition { x, y, width, height };
        (x, highest) = (x + width, highest.max(height));
        position
    };
    sizes.map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_high_as_its_highest_panel() {
        let found = positions([[24, 1], [12, 4], [12, 8], [24, 1], [16, 3]].into_iter());
        let corners: Vec<_> = found.iter().map(|position| (position.x, position.y)).collect();
        assert_eq!(corners, [(0, 0), (0, 1), (12, 1), (0, 9), (0, 10)]);
    }
}
