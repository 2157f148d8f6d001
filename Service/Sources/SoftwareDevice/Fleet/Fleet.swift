package import AttestationTestKit
package import AuthContract
internal import Bytes
internal import StrictJSON
package import SynheartAuth

/// A fleet of simulated devices as load on a service: each is the real SDK, with its keys in memory, attested by the test
/// kit. Everything that is sent is in ``log``.
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

    /// What a fleet is made of.
    package struct Settings: Sendable {
        /// The auth service.
        package var url: String
        /// The app.
        package var appID: AppID
        /// How many devices.
        package var count: Int
        /// The kinds, in turn.
        package var kinds: [Kind]
        /// Who attests iOS devices.
        package var apple: AppleAuthority
        /// Who attests Android devices.
        package var google: GoogleAuthority
        /// How many things are under way at once.
        package var concurrency: Int

        /// Settings of their parts. Team and package are those of the record that `apps example` prints.
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

    /// What registered devices do.
    package struct Load: Sendable {
        /// When it is over.
        package enum End: Sendable, Hashable {
            case requests(Int)
            case after(Duration)
        }

        /// What a signed request is for.
        package enum Question: Sendable {
            /// Its own status.
            case status
            /// A request to another service, which asks `/verify` with this credential.
            case verify(credential: String)
        }

        /// When it is over.
        package var end: End
        /// Requests a second; nil: as fast as they are answered.
        package var rate: Double?
        /// How many of a hundred requests are rotations.
        package var rotationPercent: Int
        /// What the others are.
        package var question: Question

        /// A load of its parts.
        package init(end: End, rate: Double?, rotationPercent: Int, question: Question) {
            self.end = end
            self.rate = rate
            self.rotationPercent = rotationPercent
            self.question = question
        }
    }

    /// What was exchanged.
    package let log = FleetLog()

    private let settings: Settings
    private let devices: [FleetDevice]
    private let isStopped = Locked(false)

    /// A fleet whose devices share a transport.
    package init(_ settings: Settings, transport: any HTTPTransport) throws {
        self.settings = settings
        devices = try (0..<settings.count).compactMap { [log] number in
            guard !settings.kinds.isEmpty else { return nil }
            return try FleetDevice(
                settings, kind: settings.kinds[number % settings.kinds.count], transport: transport, log: log)
        }
    }

    /// What came of a part of a run.
    package struct Outcome: Sendable, Hashable {
        /// Registrations, requests or rotations that came to the end they should.
        package internal(set) var succeeded = 0
        /// And those that did not, each counted once however often it was tried.
        package internal(set) var failed = 0
        /// How long it took.
        package internal(set) var elapsed = Duration.zero

        /// Nothing yet.
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
            return await devices[number].enrol()
        }
    }

    /// Has the registered devices send requests and rotate their keys.
    package func work(_ load: Load) async -> Outcome {
        let registered = devices.filter(\.isRegistered)
        guard !registered.isEmpty else { return Outcome() }
        let pace = Locked(Pace(load))
        let start = ContinuousClock.now
        return await run {
            let elapsed = start.duration(to: .now)
            guard let turn = pace.withLock({ $0.turn(at: elapsed) }) else { return nil }
            if turn.due > elapsed {
                guard (try? await Task.sleep(until: start + turn.due, clock: .continuous)) != nil else { return nil }
            }
            let device = registered[turn.number % registered.count]
            return load.isRotation(turn.number)
                ? await device.rotate() : await device.send(load.question, dueAt: start + turn.due)
        }
    }

    /// Begins nothing more. What is under way comes to its end.
    package func stop() { isStopped.withLock { $0 = true } }

    /// Runs steps, so many at once, until there are no more (nil).
    private func run(_ step: @escaping @Sendable () async -> Bool?) async -> Outcome {
        let outcome = Locked(Outcome())
        let start = ContinuousClock.now
        await withDiscardingTaskGroup { group in
            for _ in 0..<settings.concurrency {
                group.addTask {
                    while !isStopped.withLock({ $0 }), !Task.isCancelled, let succeeded = await step() {
                        outcome.withLock { succeeded ? ($0.succeeded += 1) : ($0.failed += 1) }
                    }
                }
            }
        }
        return outcome.withLock { outcome in
            outcome.elapsed = start.duration(to: .now)
            return outcome
        }
    }
}
