import PlayIntegrity

/// A `DecodeOutcome` that is equatable.
enum DecodeResult: Equatable {
    case decoded(requestHash: String?)
    case refused(PlayIntegrityError.Code)
    case couldNotCheck(PlayIntegrityUnavailable.Code)

    init(_ outcome: DecodeOutcome) {
        self =
            switch outcome {
            case .decoded(let verdict): .decoded(requestHash: verdict.requestHash)
            case .refused(let error): .refused(error.code)
            case .couldNotCheck(let reason): .couldNotCheck(reason.code)
            }
    }
}
