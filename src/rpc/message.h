// Messages with types: a codec written once for each message, and methods made of two of them.
//
//   template <>
//   struct rpc::Codec<Greeting> {
//     static base::Bytes encode(const Greeting& greeting, ProtocolVersion version);
//     static base::Result<Greeting> decode(const base::Bytes& bytes, ProtocolVersion version);
//   };
//   inline constexpr rpc::Method<Greeting, Reply> kGreet{verbs::kGreet};
//
// The version is the one spoken with the peer. What has been the same in all versions ignores it.
// decode gets hostile bytes: it gives an error for everything that encode does not write.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "rpc/verb.h"
#include "rpc/version.h"

namespace helenus::rpc {

template <class Message>
struct Codec;

// Bytes are their own message.
template <>
struct Codec<base::Bytes> {
  static base::Bytes encode(const base::Bytes& bytes, ProtocolVersion) { return bytes; }
  static base::Result<base::Bytes> decode(const base::Bytes& bytes, ProtocolVersion) {
    return bytes;
  }
};

// A verb, what it asks with, and what it is answered with. As a one-way message it has no answer.
template <class Request, class Answer = base::Bytes>
struct Method {
  Verb verb;
};

// A message before it is known which version its reader speaks. It is encoded in our newest
// version, whose size counts for limits, and again only for a peer that is behind.
class Payload {
 public:
  // The same bytes in every version.
  Payload(base::Bytes bytes) : newest_(std::move(bytes)) {}  // NOLINT: bytes are a payload

  template <class Message>
  static Payload of(Message message, ProtocolVersion newest) {
    Payload payload(Codec<Message>::encode(message, newest));
    payload.version_ = newest;
    payload.older_ = [message = std::move(message)](ProtocolVersion version) {
      return Codec<Message>::encode(message, version);
    };
    return payload;
  }
  // The same of a message that stays where it is. Copies of a payload share what is encoded: one
  // that goes to many is encoded once.
  template <class Message>
  static Payload of(std::shared_ptr<const Message> message, ProtocolVersion newest) {
    Payload payload(Codec<Message>::encode(*message, newest));
    payload.version_ = newest;
    payload.older_ = [message = std::move(message)](ProtocolVersion version) {
      return Codec<Message>::encode(*message, version);
    };
    return payload;
  }

  std::size_t size() const { return newest_.size(); }
  base::Bytes in(ProtocolVersion version) const {
    return older_ && version != version_ ? older_(version) : newest_;
  }
  void clear() { *this = Payload(base::Bytes()); }

 private:
  base::Bytes newest_;
  ProtocolVersion version_;
  std::function<base::Bytes(ProtocolVersion)> older_;
};

}  // namespace helenus::rpc
