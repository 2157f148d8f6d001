package com.google.android.gms.common.api;

public class ApiException extends Exception {}
