//! As much of PostgreSQL's protocol as it takes to see that a server accepts connections, and to have a statement run.
//!
//! Source: PostgreSQL 15 documentation, chapter 55 "Frontend/Backend Protocol".

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, TcpStream},
    time::Duration,
};

/// The longest time that the server may take for an answer.
const ANSWER: Duration = Duration::from_secs(60);

/// The longest message that is read.
const LONGEST: usize = 1 << 20;

/// A connection that is ready for a statement.
pub(super) struct Talk {
    stream: TcpStream,
}

impl Talk {
    pub(super) fn to(port: u16, database: &str) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(ANSWER))?;
        let mut talk = Self { stream };
        let mut startup = 196_608_u32.to_be_bytes().to_vec();
        for word in ["user", "postgres", "database", database, ""] {
            startup.extend_from_slice(word.as_bytes());
            startup.push(0);
        }
        talk.send(None, &startup)?;
        talk.until_ready()?;
        Ok(talk)
    }

    pub(super) fn execute(&mut self, sql: &str) -> io::Result<()> {
        let mut query = sql.as_bytes().to_vec();
        query.push(0);
        self.send(Some(b'Q'), &query)?;
        self.until_ready()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(body);
        self.stream.write_all(&message)
    }

    /// Reads up to "ready for query"; what the server refuses is an error.
    fn until_ready(&mut self) -> io::Result<()> {
        let mut refused = None;
        loop {
            let mut head = [0; 5];
            let read = self.stream.read_exact(&mut head);
            match (read, refused.take()) {
                (Ok(()), known) => refused = known,
                (Err(_), Some(why)) => return Err(why),
                (Err(error), None) => return Err(error),
            }
            let [kind, length @ ..] = head;
            let length = (u32::from_be_bytes(length) as usize).saturating_sub(4);
            if length > LONGEST {
                return Err(io::Error::other(
                    "the server sends a message that is too long",
                ));
            }
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body)?;
            match kind {
                b'Z' => return refused.map_or(Ok(()), Err),
                b'E' => {
                    refused = Some(io::Error::other(
                        String::from_utf8_lossy(&body).replace('\0', " "),
                    ))
                }
                _ => {}
            }
        }
    }
}
