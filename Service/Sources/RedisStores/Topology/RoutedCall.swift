internal import AuthService
internal import RESP

/// The life of one call for a partition: where its command is sent, and what a reply means.
///
/// A value without I/O. A command may have been executed although its reply is lost. So it is sent again only after a reply which
/// proves that it was not executed: `ASK` (once for each form of the command) and `NOSCRIPT` (once).
struct RoutedCall: Sendable {
    enum Action: Sendable {
        case answer(RESPValue)
        /// Send the command to the server that imports the slot, after `ASKING`.
        case ask(RedisURL.Endpoint)
        /// Send the command with the script's source to the owner, because the server that answered does not have the script.
        case load
        case refuse(StoreError, Consequence?)
    }

    /// What the router must do after an error, in addition to a new round of checks.
    enum Consequence: Sendable, Hashable {
        /// The partition loses its route. In a Cluster, the server is still the owner of its other slots.
        case dropRoute
        /// The partition's slot is being moved: its epoch must end before the partition is used again.
        case distrust
        /// The session that answered ends.
        case endSession
    }

    let owner: RedisURL.Endpoint
    /// False for a command that must not follow `ASK`, because the partition's epoch does not reveal losses of the importing
    /// server.
    let followsAsk: Bool
    /// Whether the command names a script that the server may lack.
    private(set) var mayLackScript: Bool
    private var isAsking = false

    init(owner: RedisURL.Endpoint, followsAsk: Bool, isScript: Bool) {
        (self.owner, self.followsAsk, mayLackScript) = (owner, followsAsk, isScript)
    }

    /// Decides what to do after the reply of the server to which the command was last sent.
    mutating func replied(_ reply: RESPValue) -> Action {
        guard case .error(let text) = reply else { return .answer(reply) }
        let error = RedisError(text)
        if let asked = error.redirection, asked.isAsk, followsAsk, !isAsking {
            isAsking = true
            return .ask(RedisURL.Endpoint(host: asked.host.isEmpty ? owner.host : asked.host, port: asked.port))
        }
        if error.code == "NOSCRIPT", mayLackScript {
            (mayLackScript, isAsking) = (false, false)
            return .load
        }
        if error.code == "ASK" || error.code == "TRYAGAIN" { return .refuse(error.storeError, .distrust) }
        guard error.meansWrongServer else { return .refuse(error.storeError, nil) }
        let isOfSlot = error.code == "MOVED" || error.code == "CLUSTERDOWN"
        return .refuse(error.storeError, isOfSlot ? .dropRoute : .endSession)
    }
}
