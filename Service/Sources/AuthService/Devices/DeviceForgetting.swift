internal import AuthContract
public import Logging
internal import StrictJSON

/// Forgets devices that were deregistered or rejected long ago, in the background and in steps of 1,000.
public struct DeviceForgetting: Sendable {
    private let store: (any EndedDeviceStore)?
    private let clock: any ServiceClock
    private let days: Int64
    private let logger: Logger

    private static let step = 1000
    static let interval: Duration = .seconds(3600)

    /// - Parameters:
    ///   - stores: the service's stores.
    ///   - days: the days after which an ended device is forgotten.
    ///   - clock: the service's clock.
    ///   - logger: gets failures.
    public init(
        in stores: AuthService.Stores, afterDays days: Int64, clock: any ServiceClock = SystemClock(),
        logger: Logger = Logger(label: "synheart.devices")
    ) {
        (store, self.days, self.clock, self.logger) = (stores.endedDevices, days, clock, logger)
    }

    /// Forgets ended devices every hour, until the task is cancelled.
    ///
    /// Their age is computed from the earlier of two clock readings: the current one and that of an hour ago. So a clock
    /// that is briefly ahead forgets nothing.
    public func run() async {
        var previous: UnixTime?
        repeat {
            let now = clock.now
            if let previous {
                do throws(StoreError) { while try await forgetNext(asOf: min(previous, now)) == Self.step {} } catch {
                    logger.warning("ended devices are forgotten later", metadata: ["reason": "\(error)"])
                }
            }
            previous = now
        } while (try? await Task.sleep(for: Self.interval)) != nil
    }

    /// Forgets one batch of ended devices.
    ///
    /// - Parameter time: devices that ended `days` before this time are forgotten. The audit event has the clock's time.
    /// - Returns: the number of forgotten devices.
    func forgetNext(asOf time: UnixTime) async throws(StoreError) -> Int {
        let now = clock.now
        let limit = time - days * 86_400
        let event = AuditEvent(
            .devicesForgotten, at: now, actor: "service",
            detail: JSONObject([("ended_before", .string(limit.iso8601))]))
        return try await store?.forgetDevices(endedBefore: limit, now: now, limit: Self.step, recording: event) ?? 0
    }
}
