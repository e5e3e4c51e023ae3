//! Answers come in the order of their times, none too early and none twice.

use std::sync::mpsc::channel;
use std::time::Duration;

use burstio::pfs::later::Later;

const LONGEST: Duration = Duration::from_secs(20);

#[test]
fn no_answer_comes_before_its_time_and_each_comes_once() {
    let later = Later::new().expect("threads");
    let (tell, told) = channel();
    let now = later.now();
    let times: Vec<f64> = (0..500)
        .map(|i| now + f64::from(i * 7919 % 500) * 1e-4)
        .collect();
    for (number, at_s) in times.iter().enumerate() {
        let tell = tell.clone();
        later.at(*at_s, move || tell.send(number).expect("somebody listens"));
    }
    let mut seen = vec![0; times.len()];
    for _ in &times {
        let number = told.recv_timeout(LONGEST).expect("every answer comes");
        assert!(later.now() >= times[number], "{number} came early");
        seen[number] += 1;
    }
    assert!(seen.iter().all(|times| *times == 1));
}

#[test]
fn what_is_due_sooner_overtakes_what_waits() {
    let later = Later::new().expect("threads");
    let (tell, told) = channel();
    for _ in 0..8 {
        later.at(later.now() + 3600.0, || panic!("in an hour"));
    }
    let own = tell.clone();
    later.at(later.now() + 1e-3, move || {
        own.send("soon").expect("somebody listens")
    });
    later.at(0.0, move || tell.send("past").expect("somebody listens"));
    assert_eq!(told.recv_timeout(LONGEST), Ok("past"));
    assert_eq!(told.recv_timeout(LONGEST), Ok("soon"));
}

#[test]
fn a_thousand_wait_at_once() {
    let later = Later::new().expect("threads");
    let (tell, told) = channel();
    let at_s = later.now() + 0.5;
    for _ in 0..1000 {
        let tell = tell.clone();
        later.at(at_s, move || tell.send(()).expect("somebody listens"));
    }
    for _ in 0..1000 {
        told.recv_timeout(LONGEST).expect("every answer comes");
    }
}
