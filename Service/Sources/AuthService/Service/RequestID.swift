/// The id of the request that the current task serves, for log lines and for calls to providers.
package enum RequestID {
    /// The id; nil outside a request, such as in background work.
    @TaskLocal package static var current: String?
}
