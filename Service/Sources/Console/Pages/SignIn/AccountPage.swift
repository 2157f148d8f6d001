internal import AuthContract
internal import AuthServer
internal import AuthService

/// The person's credential and session, with buttons to sign out of this session or of all.
struct AccountPage: ConsolePage {
    let path = "/account"

    func show(_ visit: Visit) async throws -> Page {
        let credential = visit.credential
        let apps = credential.scope.named.map(\.text).sorted()
        return Page(
            "Your session", "account",
            [
                "name": .text(credential.name), "id": .text(credential.id), "role": .text(credential.role.rawValue),
                "apps": .text(apps.isEmpty ? "all apps" : apps.joined(separator: ", ")),
                "expires": Moment(time: credential.expiresAt, now: visit.now).value,
                "started": Moment(time: visit.session.startedAt, now: visit.now).value,
                "ends": Moment(time: visit.session.startedAt + ConsoleSession.limit, now: visit.now).value,
                "signOut": .text(PageRequest.base + SignIn.signOutPath),
            ])
    }
}
