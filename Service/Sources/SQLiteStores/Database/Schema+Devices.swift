extension Schema {
    /// The number of devices for each app and status. Triggers maintain it, because counting a million rows takes 0.1 s. A number
    /// may be 0.
    static let deviceCounts = """
        CREATE TABLE device_counts (
          app_id TEXT NOT NULL,
          status TEXT NOT NULL,
          devices INTEGER NOT NULL,
          PRIMARY KEY (app_id, status)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO device_counts (app_id, status, devices)
          SELECT app_id, status, count(*) FROM devices GROUP BY app_id, status;

        CREATE TRIGGER new_devices_are_counted AFTER INSERT ON devices BEGIN
          INSERT INTO device_counts (app_id, status, devices) VALUES (NEW.app_id, NEW.status, 1)
            ON CONFLICT DO UPDATE SET devices = devices + 1;
        END;
        CREATE TRIGGER changed_devices_are_counted AFTER UPDATE OF app_id, status ON devices
          WHEN OLD.status <> NEW.status OR OLD.app_id <> NEW.app_id BEGIN
          UPDATE device_counts SET devices = devices - 1 WHERE app_id = OLD.app_id AND status = OLD.status;
          INSERT INTO device_counts (app_id, status, devices) VALUES (NEW.app_id, NEW.status, 1)
            ON CONFLICT DO UPDATE SET devices = devices + 1;
        END;
        CREATE TRIGGER deleted_devices_are_counted AFTER DELETE ON devices BEGIN
          UPDATE device_counts SET devices = devices - 1 WHERE app_id = OLD.app_id AND status = OLD.status;
        END;

        """

    /// An index for listing the devices of all apps that have one status, such as `pending`, newest first. It omits
    /// registered devices, the largest group, because `devices_newest` is fast enough for them.
    static let devicesNotRegistered = """
        CREATE INDEX devices_not_registered ON devices (status, registered_at DESC, device_id)
          WHERE status <> 'registered' AND forgotten = 0;
        """
}
