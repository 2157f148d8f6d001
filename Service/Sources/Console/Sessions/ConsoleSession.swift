internal import AuthContract
internal import Bytes
internal import Crypto

/// A person who signed in at this node.
struct ConsoleSession: Sendable {
    /// The credential of the person. It is read again for each request.
    let credentialID: String
    /// The first part of the token in each form of the session, so that no other page can send one.
    let formToken: String
    let startedAt: UnixTime
    /// The last request of the person; refreshes by the pages' script do not count.
    var lastUsedAt: UnixTime
    /// What the next page tells about the last change; nil: nothing.
    var notice: Notice?
    /// The numbers of the last forms that made a change, the newest last.
    fileprivate(set) var usedNumbers: [String] = []

    /// The most used numbers that a session keeps.
    static let maximumNumbers = 64
    /// Seconds without a request after which a session ends.
    static let idleLimit: Int64 = 30 * 60
    /// Seconds after which a session ends in any case.
    static let limit: Int64 = 12 * 3600

    /// Whether the session has ended. A clock that was set back ends sessions too.
    func hasEnded(at now: UnixTime) -> Bool {
        !(0..<Self.idleLimit).contains(now - lastUsedAt) || !(0..<Self.limit).contains(now - startedAt)
    }

    /// A token for the forms of one page: with a number, so that each form makes its change once.
    func newToken() -> String { formToken + "." + String(UInt64.random(in: 0...(.max)), radix: 36) }

    /// The number of a form that was made for this session; nil: it was not.
    func number(of token: String?) -> String? {
        guard let parts = token?.split(separator: ".", omittingEmptySubsequences: false), parts.count == 2,
            1...13 ~= parts[1].utf8.count, constantTimeEquals(Array(parts[0].utf8), Array(formToken.utf8))
        else { return nil }
        return String(parts[1])
    }
}

/// What a page tells about a change that was made.
struct Notice: Sendable, Hashable {
    let sentence: String
    /// The same change, for a terminal.
    let commands: CallCommands
}

/// The sessions of this node, in memory: a restart ends them, and signing out ends one at once.
///
/// They are not sealed into the cookie for all nodes. A copied cookie would then live on after its person signed out.
final class ConsoleSessions: Sendable {
    /// The most sessions of one credential. A further one ends the oldest.
    static let maximumOfCredential = 20
    /// The most sessions altogether. Only holders of credentials fill them.
    static let maximum = 1000

    private let sessions = Locked<[[UInt8]: ConsoleSession]>([:])
    private let random: any RandomSource

    init(random: any RandomSource) { self.random = random }

    /// Starts a session with a new id, and returns the id: the value of the cookie. Only its hash is kept.
    func start(_ credentialID: String, at now: UnixTime) -> String {
        let id = Base64.url.encode(random.bytes(32))
        let session = ConsoleSession(
            credentialID: credentialID, formToken: Base64.url.encode(random.bytes(32)), startedAt: now, lastUsedAt: now)
        sessions.withLock { sessions in
            sessions = sessions.filter { !$0.value.hasEnded(at: now) }
            Self.makeRoom(in: &sessions, fewerThan: Self.maximumOfCredential) { $0.credentialID == credentialID }
            Self.makeRoom(in: &sessions, fewerThan: Self.maximum) { _ in true }
            sessions[Self.key(id)] = session
        }
        return id
    }

    private static func makeRoom(
        in sessions: inout [[UInt8]: ConsoleSession], fewerThan maximum: Int, where matches: (ConsoleSession) -> Bool
    ) {
        let mine = sessions.filter { matches($0.value) }.sorted { $0.value.lastUsedAt < $1.value.lastUsedAt }
        for (key, _) in mine.prefix(max(0, mine.count - maximum + 1)) { sessions[key] = nil }
    }

    /// The session with this id, used now; nil: it has ended, or never was.
    ///
    /// - Parameter prolongs: whether the request is the person's, and takes the notice.
    func use(_ id: String, at now: UnixTime, prolongs: Bool) -> ConsoleSession? {
        sessions.withLock { sessions in
            let key = Self.key(id)
            guard let session = sessions[key] else { return nil }
            guard !session.hasEnded(at: now) else {
                sessions[key] = nil
                return nil
            }
            if prolongs { sessions[key]?.lastUsedAt = now }
            return session
        }
    }

    /// Sets or takes away what the next page tells.
    func tell(_ notice: Notice?, in id: String) { sessions.withLock { $0[Self.key(id)]?.notice = notice } }

    /// Takes the number of a form that makes a change. False: it was taken before.
    func take(_ number: String, in id: String) -> Bool {
        sessions.withLock { sessions in
            let key = Self.key(id)
            guard let used = sessions[key]?.usedNumbers, !used.contains(number) else { return false }
            sessions[key]?.usedNumbers = used.suffix(ConsoleSession.maximumNumbers - 1) + [number]
            return true
        }
    }

    /// Gives back the number of a form whose change was refused.
    func giveBack(_ number: String, in id: String) {
        sessions.withLock { $0[Self.key(id)]?.usedNumbers.removeAll { $0 == number } }
    }

    /// Ends one session.
    func end(_ id: String) { sessions.withLock { $0[Self.key(id)] = nil } }

    /// Ends all sessions of a credential at this node, and returns their number.
    func endAll(of credentialID: String) -> Int {
        sessions.withLock { sessions in
            let before = sessions.count
            sessions = sessions.filter { $0.value.credentialID != credentialID }
            return before - sessions.count
        }
    }

    private static func key(_ id: String) -> [UInt8] { Array(SHA256.hash(data: Array(id.utf8))) }
}
