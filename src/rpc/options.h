// Who a node is among its peers, and the limits of what they may make it hold.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "model/node_id.h"
#include "rpc/cluster_secret.h"
#include "rpc/frame.h"
#include "rpc/pipe.h"
#include "rpc/version.h"
#include "runtime/address.h"
#include "runtime/line_budget.h"
#include "runtime/time.h"

namespace helenus::rpc {

struct Limits {
  // Of a frame that we read, without its head. The peer is told, and sends nothing larger.
  std::size_t body_size_max = kFrameBodySizeMaxDefault;

  // What may wait for or be under way to one peer in one lane; beyond it calls and one-way messages
  // fail with Errc::overloaded at once.
  std::size_t calls_max = 4096;
  std::size_t bytes_waiting_max = std::size_t{32} << 20;
  std::size_t one_way_waiting_max = 4096;

  // Handlers that one connection may have at work, and the bytes of their requests; beyond it
  // requests are answered Errc::overloaded and one-way messages dropped.
  std::size_t handlers_max = 4096;
  std::size_t handler_bytes_max = std::size_t{64} << 20;
  // The bytes of the requests of all connections together.
  std::size_t handler_bytes_all_max = std::size_t{256} << 20;
  // Bytes of answers that a peer does not take: beyond the first we stop reading from it, beyond
  // the second answers become Errc::overloaded.
  std::size_t answer_bytes_high = std::size_t{8} << 20;
  std::size_t answer_bytes_max = std::size_t{64} << 20;

  std::size_t connections_max = 4096;
  // Connections that have not shaken hands; one more takes the place of the oldest of the address
  // that has the most of them.
  std::size_t strangers_max = 256;
  // Nodes that something is remembered of.
  std::size_t peers_max = 4096;

  // Connecting and shaking hands, for who dials; shaking hands, for who is dialled.
  runtime::Duration dial_timeout = std::chrono::seconds(3);
  runtime::Duration handshake_timeout = std::chrono::seconds(3);
  // The first pause after a failed dial, and the longest; each is drawn from the upper half.
  runtime::Duration back_off_min = std::chrono::milliseconds(100);
  runtime::Duration back_off_max = std::chrono::seconds(5);
  // Every connection is asked for a sign of life; one that is silent for longer is given up, and so
  // is one that takes nothing.
  runtime::Duration ping_interval = std::chrono::seconds(2);
  runtime::Duration silence_max = std::chrono::seconds(10);
  // What a large frame adds to that: the time in which its bytes go at this rate.
  std::size_t bytes_per_second_min = std::size_t{64} << 10;
  // Lines of the log that strangers can cause, and those that have shaken hands.
  runtime::LineBudget::Options stranger_lines = {};
  // From one line about an address that has no proof of the secret to the next.
  runtime::Duration proof_line_interval = std::chrono::minutes(1);
  runtime::LineBudget::Options peer_lines = {.burst = 256, .interval = std::chrono::seconds(1)};
  // A node that has begun a new life is silent under the old one within this time.
  runtime::Duration two_lives_max = std::chrono::seconds(15);
  // How long requests may take to end, and messages to go, when we stop.
  runtime::Duration drain_timeout = std::chrono::seconds(5);

  Patience patience() const {
    return {.timeout = silence_max, .bytes_per_second_min = bytes_per_second_min};
  }
};

struct Options {
  std::string cluster;  // 1 to kClusterNameSizeMax bytes
  model::NodeId node;
  // Where others dial us, if that is not where we listen.
  std::optional<runtime::Address> address = std::nullopt;
  VersionRange versions = kVersions;
  // What nodes of this cluster prove that they are of it; the first one proves that this one is.
  // None: it talks in the clear, over loopback addresses, with nodes that have none either.
  std::vector<ClusterSecret> secrets = {};
  // Wrong on purpose, for tests that must find it: what remains of a request's time begins anew
  // where it is read.
  bool believes_remaining_time = false;
  // In the clear over any address. For networks that are simulated.
  bool any_address_in_the_clear = false;
  Limits limits = {};
};

}  // namespace helenus::rpc
