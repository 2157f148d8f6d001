extension Duration {
    /// Whole nanoseconds, clamped to the largest number.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, isTooLarge) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let (sum, isSumTooLarge) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLarge || isSumTooLarge ? .max : sum
    }
}
