import 'package:flutter_test/flutter_test.dart';
import 'package:synheart_auth/synheart_auth.dart';
import 'package:synheart_auth/testing.dart';
import 'package:synheart_auth_example/main.dart';

void main() {
  testWidgets('the page shows the state of the identity', (WidgetTester tester) async {
    final FakeSynheartAuth auth = FakeSynheartAuth();
    await tester.pumpWidget(ExampleApp(auth: auth));
    await tester.pump();
    expect(find.text('State: unregistered'), findsOneWidget);
    auth.enter(appId, IdentityState.registered);
    await tester.pump();
    await tester.pump();
    expect(find.text('State: registered'), findsOneWidget);
  });
}
