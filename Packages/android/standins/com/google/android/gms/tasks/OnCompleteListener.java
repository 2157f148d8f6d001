package com.google.android.gms.tasks;

public interface OnCompleteListener<Result> {
    void onComplete(Task<Result> task);
}
