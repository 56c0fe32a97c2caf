// MetadataStore: where a node reads and changes the cluster's metadata, whoever decides on it.
//
// What is asked of an implementation is little, so that there can be several: a document with a
// version, a linearizable read, a linearizable compare-and-swap, and a way to hear of new versions.
// Embedded: a Proposer here and Acceptors on the nodes that the document names. ZooKeeper: one
// znode whose data is the content with the trail in front; its version plus one is ours, sync() and
// getData() are the read, setData() with the version is the compare-and-swap, a watch is the
// subscription. There nobody's acceptors are named, so those of a change are ignored and those of a
// document are empty.
//
// Core affinity: one object a node, used on the core that made it.
#pragma once

#include "base/result.h"
#include "consensus/document.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::consensus {

class MetadataStore {
 public:
  MetadataStore() = default;
  MetadataStore(const MetadataStore&) = delete;
  MetadataStore& operator=(const MetadataStore&) = delete;
  virtual ~MetadataStore() = default;

  // The newest document at some moment of the call. Errors: timeout, cancelled, unavailable,
  // overloaded, closed.
  virtual runtime::Task<base::Result<Document>> read(runtime::Until until) = 0;

  // Makes the change if the register is at change.expected, and returns its result or a document
  // later than that. Errors: already_exists if the version was taken by another change (read, and
  // make a new one); unavailable if this attempt surely did nothing; timeout or cancelled if it
  // may have: the same change with the same id may be tried again, and happens once. overloaded;
  // closed; invalid_argument.
  virtual runtime::Task<base::Result<Document>> change(Change change, runtime::Until until) = 0;

  // Returns when a version after `known` is known here, without asking anybody for it.
  // Errors: timeout, cancelled, closed.
  virtual runtime::Task<base::Result<Document>> wait_newer(Version known, runtime::Until until) = 0;
};

}  // namespace helenus::consensus
