//! Where panels are: side by side as they come, in lines that are as high as their highest.

/// The width of a dashboard.
pub(super) const COLUMNS: u64 = 24;

/// A place on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) x: u64,
    pub(super) y: u64,
    pub(super) width: u64,
    pub(super) height: u64,
}

/// The places of panels of these widths and heights.
pub(super) fn places(sizes: impl Iterator<Item = [u64; 2]>) -> Vec<Place> {
    let (mut x, mut y, mut highest) = (0, 0, 0);
    let place = |[width, height]: [u64; 2]| {
        if x + width > COLUMNS {
            (x, y, highest) = (0, y + highest, 0);
        }
        let place = Place { x, y, width, height };
        (x, highest) = (x + width, highest.max(height));
        place
    };
    sizes.map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_as_high_as_its_highest_panel() {
        let found = places([[24, 1], [12, 4], [12, 8], [24, 1], [16, 3]].into_iter());
        let corners: Vec<_> = found.iter().map(|place| (place.x, place.y)).collect();
        assert_eq!(corners, [(0, 0), (0, 1), (12, 1), (0, 9), (0, 10)]);
    }
}
