internal import AuthContract

/// What two proofs of one key say together. That a key was made in hardware stays true whatever is proven of it later, so a
/// weaker proof takes nothing away; and what a stronger one says is never credited to a weaker one.
extension Assurance {
    /// What is proven of a key whose assurance this is, once `newer` was proven of it as well, and whether the app's part
    /// (with its labels and the evidence that is kept of it) is the newer one's.
    func joined(with newer: Assurance) -> (assurance: Assurance, takesApp: Bool) {
        guard newer.standing <= standing else { return (newer.marked(as: self), true) }
        guard newer.standing == standing else { return (self, false) }
        var joined = self
        let takesApp = newer.app.rank >= app.rank
        // Of equals the newer one: labels say how the device is now.
        if takesApp { joined = newer.marked(as: self) }
        // An app that counts for less vouches for nothing here; hardware speaks for itself.
        if takesApp || newer.key.isAttested { joined.key = max(key, newer.key) { $0.rank } }
        return (joined, takesApp)
    }

    /// Whose word it is. One that counts for more makes void what was proven by one that counts for less.
    private enum Standing: Int, Comparable {
        case unproven, development, test, maker

        static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
    }

    private var standing: Standing {
        switch app {
        case .none: key == .unattested ? .unproven : .maker
        case .development: .development
        case .test: .test
        case .playIntegrity, .appAttest, .appAttestDevelopment: .maker
        }
    }

    /// Once moved to another App Attest key, moved: no later proof takes the mark away.
    private func marked(as older: Assurance) -> Assurance {
        older.labels.contains(Reattestation.rebound) ? rebound : self
    }

    /// The same, with the mark of a device that was moved to another App Attest key.
    var rebound: Assurance {
        guard !labels.contains(Reattestation.rebound) else { return self }
        return Assurance(app: app, key: key, labels: labels + [Reattestation.rebound])
    }
}

extension Assurance.App {
    fileprivate var rank: Int {
        switch self {
        case .none: 0
        case .development, .test: 1
        case .appAttestDevelopment: 2
        case .playIntegrity, .appAttest: 3
        }
    }
}

extension Assurance.Key {
    fileprivate var isAttested: Bool { self == .strongbox || self == .tee }

    fileprivate var rank: Int {
        switch self {
        case .unattested: 0
        case .rotated: 1
        case .appVouched: 2
        case .tee: 3
        case .strongbox: 4
        }
    }
}

private func max<Value>(_ left: Value, _ right: Value, by rank: (Value) -> Int) -> Value {
    rank(left) >= rank(right) ? left : right
}
