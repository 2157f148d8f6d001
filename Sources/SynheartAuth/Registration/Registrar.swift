internal import AuthContract

/// Runs the attempts at a registration. Holds no lock between them, so that another process or a reset can run.
struct RegistrationCycle: Sendable {
    let context: IdentityContext
    let backOff: BackOff

    /// Registers from any state. The result is registered, already registered or pending.
    func run() async throws(SynheartAuthError) -> Registration {
        var start: Duration?
        do throws(SynheartAuthError) {
            let registration = try await runAttempts(&start)
            if let start { context.log.event(.registrationFinished, duration: context.clock.continuous - start) }
            return registration
        } catch {
            if let start {
                context.log.event(
                    .registrationFailed, .warning, error: error, duration: context.clock.continuous - start)
            }
            throw error
        }
    }

    /// Sets `start` when the first attempt begins.
    private func runAttempts(_ start: inout Duration?) async throws(SynheartAuthError) -> Registration {
        var refusals = 0
        var attempt = 0
        var waiting: RegistrationAttempt.Candidate?
        while true {
            let outcome = try await context.exclusively { () async throws(SynheartAuthError) -> Registrar.Outcome in
                guard !backOff.isEnded else { throw .resetMeanwhile }
                let registrar = Registrar(context: context)
                if let waiting, try await registrar.canGoOn(waiting) { return try await registrar.attempt(waiting) }
                if let registration = try await registrar.settleLeftovers() { return .settled(registration) }
                if start == nil {
                    start = context.clock.continuous
                    context.log.event(.registrationStarted)
                }
                return try await registrar.attempt()
            }
            switch outcome {
            case .settled(let registration): return registration
            case .failed(let failure):
                waiting = failure.pause?.next
                if let pause = failure.pause {
                    try await backOff.pause(pause.delay, orThrow: .resetMeanwhile)
                    continue
                }
                if failure.remedy == .attestAgain { refusals += 1 }
                guard failure.isRetried, refusals <= 1,
                    let delay = RetryPolicy.registration.delay(
                        after: attempt, random: context.random, retryAfter: failure.error.retryAfter)
                else { throw failure.error }
                try await backOff.pause(delay, orThrow: .resetMeanwhile)
                attempt += 1
            }
        }
    }
}

/// Registers a device. The caller holds the operation lock.
struct Registrar: Sendable {
    let context: IdentityContext

    enum Outcome: Sendable {
        case settled(Registration)
        case failed(RegistrationFailure)
    }

    /// Makes one attempt, with its own challenge, or continues an attempt that waited for the attestation provider.
    func attempt(_ waiting: RegistrationAttempt.Candidate? = nil) async throws(SynheartAuthError) -> Outcome {
        do throws(RegistrationFailure) {
            let attempt = RegistrationAttempt(context: context)
            if let waiting { return .settled(try await attempt.run(waiting)) }
            return .settled(try await attempt.run())
        } catch {
            context.log.event(.attemptFailed, .warning, error: error.error)
            if error.pause == nil { try await giveUpAttempt(error) }
            return .failed(error)
        }
    }

    /// Whether an attempt that waited for the attestation provider can continue: the record is as the attempt left it,
    /// and the challenge is still valid.
    func canGoOn(_ waiting: RegistrationAttempt.Candidate) async throws(SynheartAuthError) -> Bool {
        let record = try await context.ledger.load()
        guard case .registration(let reference, _) = record.journal, record.state == .keyReady else { return false }
        return reference == waiting.key.reference && context.clock.continuous < waiting.challenge.goodUntil
    }

    /// Returns the existing or pending registration. If there is none, clears what an interrupted operation or a lost key left, and
    /// returns nil: a registration can begin.
    func settleLeftovers() async throws(SynheartAuthError) -> Registration? {
        var record = try await context.ledger.load()
        if case .reset = record.journal {
            try await Resetter(context: context).finish(record)
            record = try await context.ledger.load()
        }
        switch (record.state, record.identity) {
        case (.registered, _), (.registering, .active):
            if let registration = try await context.existingRegistration(record) { return registration }
            if let key = record.key { try await context.ledger.apply(.keyLost(key)) }
            try await wipe()
        case (.keyInvalid, _): try await wipe()
        case (.registering, .pending): return try await settlePending(record)
        case (.challengeReceived, _), (.keyReady, _), (.registering, .none):
            try await context.ledger.apply(.registrationFailed(forgetsKey: false))
        case (.unregistered, _): break
        }
        return nil
    }

    private func wipe() async throws(SynheartAuthError) {
        for alias in KeyAlias.both(context.appID) { try await context.deleteKey(alias) }
        try await context.ledger.apply(.wiped)
    }

    /// Asks for the decision on a pending registration. If the key is lost, drops the registration and returns nil.
    private func settlePending(_ record: IdentityRecord) async throws(SynheartAuthError) -> Registration? {
        guard let deviceID = record.deviceID, let status = try await statusOfPending(record) else {
            try await context.ledger.apply(.registrationFailed(forgetsKey: true))
            return nil
        }
        switch status.status {
        case .registered:
            try await context.ledger.apply(.registered(deviceID, at: status.registeredAt))
            return Registration(status: .registered, deviceId: deviceID.text)
        case .pending: return Registration(status: .pending, deviceId: deviceID.text)
        case .rejected:
            try await context.ledger.apply(.registrationFailed(forgetsKey: false))
            throw SynheartAuthError(.attestationFailed, "the service rejected this device")
        case .revoked, .deregistered:
            throw SynheartAuthError(.deviceRevoked, "the service has revoked this device")
        }
    }

    /// The status of a pending device; nil if its key is gone, or loads but cannot sign any more.
    private func statusOfPending(_ record: IdentityRecord) async throws(SynheartAuthError) -> StatusResponse? {
        guard let key = record.key, try await context.publicKey(key) != nil else { return nil }
        do throws(SynheartAuthError) {
            return try await context.signedCall(.status, record: record, alias: key.alias).read()
        } catch {
            guard error.code == .keyInvalidated else { throw error }
            return nil
        }
    }

    private func giveUpAttempt(_ failure: RegistrationFailure) async throws(SynheartAuthError) {
        do throws(SynheartAuthError) {
            // Before the attempt first changes the record's state, there is nothing to undo.
            guard try await context.ledger.load().state != .unregistered else { return }
            try await context.ledger.apply(.registrationFailed(forgetsKey: failure.forgetsKey))
        } catch {
            // Throw the attempt's error, not the error of this cleanup. The next call cleans up the record.
            throw failure.error
        }
    }
}

/// The failure of an attempt, which determines whether another attempt follows.
struct RegistrationFailure: Error {
    let error: SynheartAuthError
    let remedy: RetryTable.Remedy
    let forgetsKey: Bool
    /// The pause after which this attempt continues, if the attestation provider is unavailable; nil otherwise.
    let pause: Pause?

    struct Pause: Sendable {
        let delay: Duration
        let next: RegistrationAttempt.Candidate
    }

    /// A failure. Without a `remedy`, it has the error's remedy.
    init(
        error: SynheartAuthError, remedy: RetryTable.Remedy? = nil, forgetsKey: Bool = false, pause: Pause? = nil
    ) {
        self.error = error
        self.remedy = remedy ?? error.remedy
        self.forgetsKey = forgetsKey
        self.pause = pause
    }

    /// The failure if the service needs the key's hardware attestation, but the attestation names a challenge that is
    /// already used. The next attempt makes a new key.
    static func keyAttestationSpent(_ error: SynheartAuthError) -> RegistrationFailure {
        RegistrationFailure(
            error: error, remedy: RetryTable.row(of: .keyAttestationSpent).remedy, forgetsKey: true)
    }

    /// Whether another attempt may follow, with a new challenge.
    var isRetried: Bool { [.backOff, .newChallenge, .attestAgain].contains(remedy) }
}

extension IdentityContext {
    /// Applies an event of an attempt. If that fails, the attempt fails.
    func record(_ event: IdentityEvent) async throws(RegistrationFailure) {
        do throws(SynheartAuthError) {
            try await ledger.apply(event)
        } catch {
            throw RegistrationFailure(error: error)
        }
    }

    /// Whether the device is registered according to the record, and its key is not lost. A mere suspicion that the key
    /// is lost does not change the result.
    func isRegistered() async throws(SynheartAuthError) -> Bool {
        let record = try await ledger.load()
        do throws(SynheartAuthError) {
            guard record.identity == .active else { return false }
            if try await existingRegistration(record) != nil { return true }
            // A rotation may have replaced the key, and deleted it, after the record was read.
            let now = try await ledger.load()
            guard now.key != record.key else { return false }
            return try await existingRegistration(now) != nil
        } catch {
            guard error.cause is SuspiciousAnswer else { throw error }
            return true
        }
    }

    /// The registration in the record, if its key exists. No network.
    func existingRegistration(_ record: IdentityRecord) async throws(SynheartAuthError) -> Registration? {
        guard record.identity == .active, let deviceID = record.deviceID, let key = record.key,
            try await publicKey(key) != nil
        else { return nil }
        return Registration(status: .alreadyRegistered, deviceId: deviceID.text)
    }
}
