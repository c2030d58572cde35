// Rewrites that make a program cheaper to run before it is cut into instructions.
#pragma once
#include "torchscript/graph/program.h"

namespace ltc::torchscript {

// A part of a reshaped stack is the reshaped part of the stack: queries, keys and values that were computed together need not be
// laid out anew to be told apart.
void slice_stacks(Program& program);

// Moves each view to right behind what it views: where it stands between element-wise nodes, they could not run as one.
void hoist_views(Program& program);

// The gradient of a tensor that was taken apart is a sum of tensors that are zero but for a part each: becomes the parts, one
// behind the other, as they are read afterwards.
void join_parts(Program& program);

// Networks written out step by step multiply small matrices at every step. A sum of products becomes one product along all their
// inner dims, and products of rows known at once with the same matrix become one of all the rows. Views must have been hoisted.
void join_products(Program& program);

// A large product with a bias is a product and a sum, of the form in which it is read: the bias is added in the loop that comes
// next, if there is one.
void split_biases(Program& program);

// A relu that only a max-pool reads becomes a part of it, and the gradient of such a pair is that of the relu first. The same
// results, without a pass over the whole image. Max-pools whose indices nobody reads make none.
void fold_relus(Program& program);

// Decides which kernel computes each node, by shapes. In a program that runs often, nodes become those of our own operators where
// that is faster; such convolutions read and write images channels-last.
void choose_kernels(Program& program, bool often);

// A convolution whose weight is a param that stays as it is multiplies with a packed form of it, and a batch norm by fixed
// statistics behind it becomes a part of that form. Buffers keep the forms. Choices of kernels must have been made.
void pack_weights(Program& program);

// The kernels that it calls without the dispatcher, by a number that saved programs have. Null if there is no such number.
uint32_t number_of(DirectCall call);
DirectCall direct_call(uint32_t number);

}  // namespace ltc::torchscript
