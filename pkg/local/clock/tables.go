package clock

// versions are the steps to the tables as they are now: see postgres.Grow.
var versions = []string{
	`create table local_clock.schedules (
		name       text collate "C" primary key,
		expression text not null,
		time_zone  text not null,
		start_at   timestamptz,
		end_at     timestamptz,
		enabled    boolean not null,
		input      text not null,        -- JSON, as it was put
		made       timestamptz not null, -- what a rate without a start is counted from
		occurrence timestamptz,          -- the next, or the one that is being delivered; null: none
		wake       timestamptz,          -- when to look at it: the occurrence, or when its claim ends, or when it is tried again; null: never
		attempts   integer not null default 0, -- deliveries of the occurrence
		claim      bigint not null default 0   -- counts claims: who has an older one has none
	);
	create index schedules_wake on local_clock.schedules (wake) where wake is not null`,
}
