extension Duration {
    /// Whole nanoseconds, clamped to the largest number.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isTooLongNow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLong || isTooLongNow ? .max : sum
    }
}
