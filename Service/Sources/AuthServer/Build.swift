/// The build.
public enum Build {
    /// The version, by semantic versioning.
    public static let version = "0.1.0"
}
