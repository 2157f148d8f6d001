internal import AuthContract

/// Combines the assurance of two proofs of one key. What is proven about a hardware key stays proven, so a weaker proof lowers nothing.
/// Proofs of different standing (see `Standing`) are not mixed: the proof with the higher standing replaces the other one.
extension Assurance {
    /// This assurance of a key, combined with that of another proof.
    ///
    /// - Parameter newer: the assurance of the other proof.
    /// - Returns: the joined assurance, and whether its app part (with labels and stored evidence) comes from `newer`.
    func joined(with newer: Assurance) -> (assurance: Assurance, takesApp: Bool) {
        guard newer.standing <= standing else { return (newer.marked(as: self), true) }
        guard newer.standing == standing else { return (self, false) }
        var joined = self
        let takesApp = newer.app.rank >= app.rank
        // Of two equal proofs the newer one is used, because its labels are current.
        if takesApp { joined = newer.marked(as: self) }
        // With a weaker app assurance, a proof raises the key's level only if hardware attests the key, independently of the app.
        if takesApp || newer.key.isAttested { joined.key = max(key, newer.key) { $0.rank } }
        // The key's level may come from the proof whose app part is not used. It may then depend on an added root of that
        // proof, so add that proof's root labels.
        if joined.key != (takesApp ? newer : self).key { joined.addRootLabels(of: takesApp ? self : newer) }
        return (joined, takesApp)
    }

    /// The rank of a proof by who vouches for it, the lowest first. A proof of a higher standing replaces one of a lower standing.
    private enum Standing: Int, Comparable {
        case unproven, development, test, platformProvider

        static func < (left: Standing, right: Standing) -> Bool { left.rawValue < right.rawValue }
    }

    private var standing: Standing {
        switch app {
        case .none: key == .unattested ? .unproven : .platformProvider
        case .development: .development
        case .test: .test
        case .playIntegrity, .appAttest, .appAttestDevelopment: .platformProvider
        }
    }

    /// This assurance, with the label `rebound` if the older one has it: no later proof removes this label.
    private func marked(as older: Assurance) -> Assurance {
        older.labels.contains(Reattestation.rebound) ? rebound : self
    }

    /// Adds the labels of the added roots (``AddedRoot/label``) under which another proof verified.
    mutating func addRootLabels(of other: Assurance) {
        labels += other.labels.filter { $0.hasPrefix(AddedRoot.labelPrefix) && !labels.contains($0) }
    }

    /// The same assurance with the label `rebound`, for a device with a replaced App Attest key.
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
