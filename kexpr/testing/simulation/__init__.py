"""A simulated world: several gateways over one simulated disk, with a clock, a provider and a host, from one seed.

The code under test is the real one, from the paths down to the file-system seam. Every system call, failpoint,
request and delivery is one *step*: the place where the world may hand on to another task, kill a process, cut the
power, fail the call or move the clock. All choices come from one `random.Random(seed)`, so that a seed is a history.

    clock.py      UTC that jumps, a boot clock, boot ids that change or cannot be read
    disk.py       what survives a crash: un-synced writes lost, torn or zero-filled, entries that revert, lying fsyncs
    scheduler.py  tasks (taps) of simulated processes, one running at a time
    provider.py   late, lost, repeated and wrong answers; counts requests by artifact
    host.py       edits and sends that fail before or after they took effect; what is visible; pins and sessions
    gateway.py    one process: state, authorities, coordinator and paths over the simulated parts
    journal.py    one process over the outcome journal instead
    site.py       all of them put together, the gateways and taps on it, the checks at every step
    world.py      histories: events drawn from the seed, and the end that settles them
    invariants.py what must hold at every step
"""
