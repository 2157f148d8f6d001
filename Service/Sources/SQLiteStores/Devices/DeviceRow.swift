internal import AuthContract
internal import AuthService
internal import GRDB

extension AppAttestKeyState {
    /// The values of the state of an App Attest key, in the order of `columns`.
    static func arguments(_ evidence: AppAttestKeyState?) -> StatementArguments {
        guard let evidence else {
            return StatementArguments([(any DatabaseValueConvertible)?](repeating: nil, count: columns.count - 1)) + [0]
        }
        return [
            evidence.keyID.data, evidence.publicKey.data, evidence.appID, evidence.environment,
            evidence.attestedExtensions ? 1 : 0, Int64(evidence.counter), evidence.receipt?.data,
            evidence.receiptOutcome,
            evidence.riskMetric.map { Int64($0) },
        ] + arguments(evidence.refresh)
    }

    /// The values of a refresh, in the order of `refreshColumns`.
    static func arguments(_ refresh: ReceiptRefresh) -> StatementArguments {
        [refresh.dueAt?.seconds, refresh.askedAt?.seconds, refresh.outcome, Int64(refresh.failures)]
    }
}
