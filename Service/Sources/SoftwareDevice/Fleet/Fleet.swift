package import AttestationTestKit
package import AuthContract
internal import Bytes
internal import StrictJSON
package import SynheartAuth

/// A fleet of simulated devices that puts load on a service. Each device is the real SDK with its keys in memory, attested by
/// the test kit. ``log`` records every exchange.
package struct Fleet: Sendable {
    /// How a device is attested.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// App Attest.
        case ios
        /// A Play Integrity token and a key attestation.
        case android
        /// Development mode, without an attestation.
        case development
    }

    /// The settings of a fleet.
    package struct Settings: Sendable {
        /// The auth service.
        package var url: String
        /// The app.
        package var appID: AppID
        /// The number of devices.
        package var count: Int
        /// The kinds of devices, assigned in turn: device n has the n-th kind, starting over after the last.
        package var kinds: [Kind]
        /// The authority that attests iOS devices.
        package var apple: AppleAuthority
        /// The authority that attests Android devices.
        package var google: GoogleAuthority
        /// The largest number of operations that run concurrently.
        package var concurrency: Int

        /// Memberwise initializer. The devices use the team id and the package of the app record that the command `apps example` prints.
        package init(
            url: String, appID: AppID, count: Int, kinds: [Kind], apple: AppleAuthority, google: GoogleAuthority,
            concurrency: Int
        ) {
            self.url = url
            self.appID = appID
            self.count = count
            self.kinds = kinds
            self.apple = apple
            self.google = google
            self.concurrency = concurrency
        }
    }

    /// The load that the registered devices produce.
    package struct Load: Sendable {
        /// When the load ends: after a number of operations, or after a time.
        package enum End: Sendable, Hashable {
            case requests(Int)
            case after(Duration)
        }

        /// The kind of a signed request.
        package enum Question: Sendable {
            /// The device's own status.
            case status
            /// A request to another service, which verifies it at `/verify` with this credential.
            case verify(credential: String)
        }

        /// When the load ends.
        package var end: End
        /// Operations per second. If nil, an operation begins as soon as an earlier one ends.
        package var rate: Double?
        /// The percentage of operations that are rotations.
        package var rotationPercent: Int
        /// The kind of the requests that are not rotations.
        package var question: Question
        /// The shares of bad requests. `rotationPercent` is a percentage of the remaining operations.
        package var bad: BadShares

        /// Memberwise initializer.
        package init(end: End, rate: Double?, rotationPercent: Int, question: Question, bad: BadShares = BadShares()) {
            self.bad = bad
            self.end = end
            self.rate = rate
            self.rotationPercent = rotationPercent
            self.question = question
        }
    }

    /// The exchanges of all devices.
    package let log = FleetLog()

    private let settings: Settings
    private let devices: [FleetDevice]
    private let isStopped = Locked(false)
    /// The task of the latest phase (the registrations, or one load); nil before the first phase begins.
    private let running = Locked<Task<Void, Never>?>(nil)

    /// Creates a fleet whose devices share a transport.
    package init(_ settings: Settings, transport: any HTTPTransport) throws {
        self.settings = settings
        devices = try (0..<settings.count).compactMap { [log] number in
            guard !settings.kinds.isEmpty else { return nil }
            return try FleetDevice(
                settings, kind: settings.kinds[number % settings.kinds.count], transport: transport, log: log)
        }
    }

    /// The result of one phase: all registrations, or one load.
    package struct Outcome: Sendable, Hashable {
        /// The number of operations that succeeded.
        package internal(set) var succeeded = 0
        /// The number of bad requests that the service refused correctly.
        package internal(set) var refused = 0
        /// The number of failed operations, and of bad requests that were not refused correctly. Retries of one operation are not
        /// counted.
        package internal(set) var failed = 0
        /// The duration of the phase.
        package internal(set) var elapsed = Duration.zero

        /// An empty result.
        package init() {}
    }

    /// Registers every device.
    package func enrol() async -> Outcome {
        let numbers = Locked(0)
        return await run {
            let number = numbers.withLock { number in
                defer { number += 1 }
                return number
            }
            guard devices.indices.contains(number) else { return nil }
            return Step(await devices[number].enrol())
        }
    }

    /// How one operation ended.
    private enum Step {
        case succeeded, refused, failed

        init(_ hasSucceeded: Bool) { self = hasSucceeded ? .succeeded : .failed }
    }

    /// Makes the registered devices send requests and rotate their keys. If the load has bad requests, a tenth of the
    /// devices, but at least one, sends all of them, because the service refuses every request of a device for a while
    /// after its signatures failed. These devices send nothing else, unless there is only one device.
    package func work(_ load: Load) async -> Outcome {
        let registered = devices.filter(\.isRegistered)
        guard !registered.isEmpty else { return Outcome() }
        let attackers = load.bad.total > 0 ? registered.suffix(max(1, registered.count / 10)) : []
        let honest = registered.dropLast(registered.count > attackers.count ? attackers.count : 0)
        let pace = Locked(Pace(load))
        let start = ContinuousClock.now
        return await run {
            let elapsed = start.duration(to: .now)
            guard let turn = pace.withLock({ $0.turn(at: elapsed) }) else { return nil }
            if turn.due > elapsed {
                guard (try? await Task.sleep(until: start + turn.due, clock: .continuous)) != nil else { return nil }
            }
            let number = load.bad.count(before: turn.number)
            if let kind = load.bad.kind(of: turn.number) {
                let attacker = attackers[attackers.startIndex + number % attackers.count]
                return await attacker.sendBad(kind, load.question, dueAt: start + turn.due) ? .refused : .failed
            }
            let good = turn.number - number
            let device = honest[good % honest.count]
            return Step(
                load.isRotation(good)
                    ? await device.rotate() : await device.send(load.question, dueAt: start + turn.due))
        }
    }

    /// The time that running operations get to finish after `stop`.
    private static let grace = Duration.seconds(2)

    /// Starts no further operations. Those that still run after 2 seconds are cancelled, and not counted.
    package func stop() {
        isStopped.withLock { $0 = true }
        guard let running = running.withLock({ $0 }) else { return }
        Task {
            try? await Task.sleep(for: Self.grace)
            running.cancel()
        }
    }

    /// Runs steps, up to `concurrency` at a time, until they return nil or the fleet is stopped.
    private func run(_ step: @escaping @Sendable () async -> Step?) async -> Outcome {
        let outcome = Locked(Outcome())
        let start = ContinuousClock.now
        let phase = Task {
            await withDiscardingTaskGroup { group in
                for _ in 0..<settings.concurrency {
                    group.addTask {
                        while !isStopped.withLock({ $0 }), let end = await step(), !Task.isCancelled {
                            outcome.withLock { outcome in
                                switch end {
                                case .succeeded: outcome.succeeded += 1
                                case .refused: outcome.refused += 1
                                case .failed: outcome.failed += 1
                                }
                            }
                        }
                    }
                }
            }
        }
        running.withLock { $0 = phase }
        await withTaskCancellationHandler {
            await phase.value
        } onCancel: {
            phase.cancel()
        }
        return outcome.withLock { outcome in
            outcome.elapsed = start.duration(to: .now)
            return outcome
        }
    }
}
