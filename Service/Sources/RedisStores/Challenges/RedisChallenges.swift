internal import AuthContract
internal import AuthService
internal import RESP

/// Challenges in Redis. A script stores them (`SET NX PX`), and `GETDEL` takes them.
///
/// The id of the current `Epoch` is part of the key. So a taken challenge that reappears after a loss of history
/// cannot be taken in the new epoch.
struct RedisChallenges: ChallengeStore {
    let router: Router
    let clock: any ServiceClock
    /// The largest number of challenges, of all partitions together. But each partition may always keep 16.
    let maximum: Int

    /// Additional seconds for which a key is kept, for a node whose clock is behind that of the node that stored it.
    private static let margin = ClaimHistory.nodesApart

    func put(_ challenge: IssuedChallenge, source: String) async throws(StoreError) {
        let life = challenge.expiresAt + IssuedChallenge.keptAfterExpiry - clock.now
        guard life >= 0 else { return }
        let partition = router.partitions.partition(of: challenge.bytes)
        let (session, epoch) = try router.route(partition)
        let keys = router.partitions[partition]
        // Cut the source, so that long texts do not make the index large.
        let source = String(source.prefix(64))
        let name = "\(epoch.id):"
        let share = max(16, (maximum + router.partitions.count - 1) / router.partitions.count)
        _ = try await router.run(.putChallenge, partition, on: session, words: 14) { command in
            command.add("5")
            command.add(keys.challenges + name, bytes: challenge.bytes)
            command.add(keys.prefix + "i:" + source)
            command.add(keys.prefix + "sources")
            command.add(keys.prefix + "challenges")
            command.add(keys.prefix + "ends")
            command.add(Self.text(challenge))
            command.add((life + Self.margin) * 1000)
            command.add(source)
            command.add(keys.challenges)
            command.add(keys.prefix + "i:")
            command.add(name, bytes: challenge.bytes)
            command.add(Int64(share))
            command.add((IssuedChallenge.keptAfterExpiry + Self.margin) * 1000)
        }
    }

    func take(_ bytes: [UInt8]) async throws(StoreError) -> IssuedChallenge? {
        // A client may send any bytes. An issued challenge has 32 bytes.
        guard bytes.count == 32 else { return nil }
        let partition = router.partitions.partition(of: bytes)
        let (session, epoch) = try router.route(partition)
        var command = RESPCommand("GETDEL", count: 2)
        command.add(router.partitions[partition].challenges + epoch.id + ":", bytes: bytes)
        let reply = try await router.call(command, partition, on: session, followsAsk: false)
        if case .null = reply { return nil }
        guard let text = reply.text, let challenge = Self.challenge(text, bytes) else {
            throw StoreError(.unreadable, "a challenge in Redis is damaged")
        }
        guard clock.now <= challenge.expiresAt + IssuedChallenge.keptAfterExpiry else { return nil }
        return challenge
    }

    /// App, purpose and expiry. None of them contains a space.
    private static func text(_ challenge: IssuedChallenge) -> String {
        "\(challenge.appID.text) \(challenge.purpose.rawValue) \(challenge.expiresAt.seconds)"
    }

    private static func challenge(_ text: String, _ bytes: [UInt8]) -> IssuedChallenge? {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 3, let app = try? AppID(String(words[0])),
            let purpose = ChallengePurpose(rawValue: String(words[1])), let expiry = Int64(words[2])
        else { return nil }
        return IssuedChallenge(bytes: bytes, appID: app, purpose: purpose, expiresAt: UnixTime(expiry))
    }
}
