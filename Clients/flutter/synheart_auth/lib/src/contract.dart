import 'shapes.dart';

// The contract of the platform channels, equal to contract/channel.json. Tests compare this file, and the Kotlin and
// Swift halves, with contract/channel.json.

/// The channel of the calls.
const String callsChannel = 'ai.synheart.auth/calls';

/// The channel of the changes of state.
const String statesChannel = 'ai.synheart.auth/states';

/// The native half's code for a malformed message.
const String malformedCode = 'INVALID_MESSAGE';

const List<String> _identityStates = [
  'unregistered',
  'challengeReceived',
  'keyReady',
  'registering',
  'registered',
  'keyInvalid',
];
const List<String> _registrationStatuses = ['registered', 'alreadyRegistered', 'pending'];
const List<String> _rotationReasons = ['scheduled', 'compromise'];
const List<String> _resetReasons = ['server_instructed', 'user_requested', 'key_lost'];
const List<String> _schemes = ['one', 'two'];
const List<String> _androidProofs = ['playIntegrity', 'keyAttestation', 'both', 'either'];
const List<String> _recoveries = ['none', 'retry', 'configure', 'register', 'rotate', 'reset', 'correctClock'];

const Integer _optionalCall = Integer(1, 9007199254740991, nullable: true);
const Text _appId = Text(128);
const Bytes _body = Bytes(16777216);
const Choice _optionalScheme = Choice(_schemes, nullable: true);

/// The result of `registerDevice`.
const Message registration = Message({'status': Choice(_registrationStatuses), 'deviceId': Text(64)});

/// The result of `rotateKey`.
const Message keyRotation = Message({'deviceId': Text(64), 'effectiveAt': Integer(0, 253402300799)});

/// The result of `deviceToken`.
const Message deviceToken = Message({'token': Text(16384), 'remainingMs': Integer(0, 600000)});

/// A header line.
const Message header = Message({'name': Text(256), 'value': Text(16384)});

/// Header lines.
const Items headers = Items(header, 256);

/// The result of `send`.
const Message authAnswer = Message({'status': Integer(100, 599), 'headers': headers, 'body': _body});

/// An event of the states channel.
const Message stateChange = Message({
  'appId': _appId,
  'from': Choice(_identityStates),
  'to': Choice(_identityStates),
});

/// The details of an error.
const Message errorDetails = Message({
  'recovery': Choice(_recoveries),
  'retryAfterMs': Integer(0, 86400000, nullable: true),
  'fromService': Flag(),
  'mayHaveHappened': Flag(),
  'from': Choice(_identityStates, nullable: true),
  'to': Choice(_identityStates, nullable: true),
}, nullable: true);

/// The methods of the calls channel.
const Map<String, Call> calls = {
  'configure': Call(
    Message({
      'baseUrl': Text(2048),
      'origins': Items(Text(2048), 32),
      'aliases': Items(Text(2048), 32),
      'scheme': Choice(_schemes),
      'rotatesAutomatically': Flag(),
      'cloudProjectNumber': Integer(1, 9007199254740991, nullable: true),
      'androidProof': Choice(_androidProofs),
      'developmentMode': Flag(),
    }),
    null,
  ),
  'isRegistered': Call(Message({'appId': _appId}), Flag()),
  'registerDevice': Call(Message({'call': _optionalCall, 'appId': _appId, 'joins': Flag()}), registration),
  'getDeviceId': Call(Message({'appId': _appId}), Text(64, nullable: true)),
  'getState': Call(Message({'appId': _appId}), Choice(_identityStates)),
  'signRequest': Call(
    Message({'appId': _appId, 'method': Text(32), 'path': Text(16384), 'body': _body, 'scheme': _optionalScheme}),
    headers,
  ),
  'sign': Call(
    Message({
      'call': _optionalCall,
      'appId': _appId,
      'method': Text(32),
      'url': Text(16384),
      'body': _body,
      'scheme': _optionalScheme,
      'asserting': Flag(),
    }),
    headers,
  ),
  'send': Call(
    Message({
      'call': _optionalCall,
      'appId': _appId,
      'method': Text(32),
      'url': Text(16384),
      'headers': headers,
      'body': _body,
      'scheme': _optionalScheme,
      'asserting': Flag(),
      'timeoutMs': Integer(1, 600000),
      'maximumAnswer': Integer(0, 16777216),
    }),
    authAnswer,
  ),
  'deviceToken': Call(
    Message({'call': _optionalCall, 'appId': _appId, 'audience': Text(1024, nullable: true)}),
    deviceToken,
  ),
  'rotateKey': Call(
    Message({'call': _optionalCall, 'appId': _appId, 'reason': Choice(_rotationReasons)}),
    keyRotation,
  ),
  'resetDeviceIdentity': Call(
    Message({'call': _optionalCall, 'appId': _appId, 'reason': Choice(_resetReasons)}),
    null,
  ),
  'maintain': Call(Message({'call': _optionalCall, 'appId': _appId}), null),
  'correctClockSkew': Call(
    Message({'serverTimestamp': Number(), 'appId': Text(128, nullable: true)}),
    null,
  ),
  'cancel': Call(Message({'call': Integer(1, 9007199254740991)}), null),
};
