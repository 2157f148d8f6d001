package com.example.synheart_auth_example

import io.flutter.embedding.android.FlutterActivity

class MainActivity : FlutterActivity()
