import SwiftUI
import SynheartAuth

/// A view that registers the device and loads readings when it appears.
///
/// SwiftUI cancels the task when the view disappears. The call then throws `CancellationError`; a registration that the task
/// began continues, and the next call joins it.
struct ReadingsView: View {
    let client: ReadingsClient
    @State private var text = "Loading…"

    var body: some View {
        Text(text)
            .task {
                do {
                    try await client.start()
                    text = try await client.latest()
                } catch is CancellationError {
                    // SwiftUI cancelled the task because the view disappeared. There is nothing to show.
                } catch let error as SynheartAuthError where error.isRetryable {
                    text = "No connection. Open this page again."
                } catch {
                    text = "This device cannot load readings."
                }
            }
    }
}
