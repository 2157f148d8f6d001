/// A running operation of an identity. It belongs to the actor that began it.
final class RunningOperation<Value: Sendable> {
    /// The task of an operation. It is separate from the tasks of its callers, so that the operation continues when a caller is cancelled.
    typealias Work = Task<Result<Value, SynheartAuthError>, Never>

    let work: Work
    let backOff: BackOff
    /// The purpose, if the operation is a rotation.
    let goal: RotationGoal
    /// The rotation that has taken the place of this one.
    var successor: RunningOperation?

    init(_ work: Work, _ backOff: BackOff, goal: RotationGoal = RotationGoal()) {
        (self.work, self.backOff, self.goal) = (work, backOff, goal)
    }
}
