public import AuthContract
public import AuthService

extension MemoryStores: ReceiptStore {
    /// See `ReceiptStore`.
    public func takeDueReceipt(at now: UnixTime, lease: UnixTime) throws(StoreError) -> DueReceipt? {
        try check(.takeDueReceipt)
        let next = deviceRecords.values.filter { $0.status == .registered && $0.appAttest?.receipt != nil }
            .compactMap { device in device.appAttest?.refresh.dueAt.map { (device, $0) } }
            .filter { $0.1 <= now }
            .min { $0.1 < $1.1 }
        guard var device = next?.0 else { return nil }
        device.appAttest?.refresh.dueAt = lease
        deviceRecords[device.deviceID] = device
        return DueReceipt(device)
    }

    /// See `ReceiptStore`.
    public func record(
        _ change: ReceiptChange, of due: DueReceipt, recording event: AuditEvent?
    ) throws(StoreError) -> Bool {
        try check(.recordReceipt)
        return self.change(
            due.deviceID, due.appID,
            where: { device in
                device.appAttest?.keyID == due.evidence.keyID && device.appAttest?.receipt == due.receipt
                    && device.appAttest?.refresh.dueAt == due.evidence.refresh.dueAt
            }, recording: event
        ) { device in
            device.appAttest?.refresh = change.refresh
            guard let replacement = change.replacement else { return }
            device.appAttest?.receipt = replacement.receipt
            device.appAttest?.receiptOutcome = "verified"
            device.appAttest?.riskMetric = replacement.riskMetric
        }
    }
}
