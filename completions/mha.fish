# SPDX-License-Identifier: MIT
# fish completion for mha

set -l commands demo verify bench explain tensors corpus version words help

complete -c mha -f
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a demo -d "draw the heads of a small example"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a verify -d "check against double precision"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a bench -d "measure as a share of the peak"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a explain -d "say how a problem is computed"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a tensors -d "list a safetensors file"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a corpus -d "sentence pairs with known truth"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a version -d "version and instruction set"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a words -d "explain the problem words"
complete -c mha -n "not __fish_seen_subcommand_from $commands" -a help -d "explain a command or the words"

complete -c mha -n "__fish_seen_subcommand_from help" -a "demo verify bench explain tensors corpus version words"
complete -c mha -n "__fish_seen_subcommand_from $commands" -l help -d "help"
complete -c mha -n "__fish_seen_subcommand_from verify bench explain tensors corpus version" -l json -d "JSON"
complete -c mha -n "__fish_seen_subcommand_from verify bench explain" -l threads -x -d "threads"
complete -c mha -n "__fish_seen_subcommand_from verify demo corpus" -l seed -x -d "seed"
complete -c mha -n "__fish_seen_subcommand_from verify" -l configs -x -d "number of configurations"
complete -c mha -n "__fish_seen_subcommand_from verify" -l case -x -d "SEED:INDEX or a problem word"
complete -c mha -n "__fish_seen_subcommand_from bench" -l rounds -x -d "rounds"
complete -c mha -n "__fish_seen_subcommand_from bench" -l table -d "the project's own table"
complete -c mha -n "__fish_seen_subcommand_from bench" -l preset -x -a "bert-base bert-large gpt2-small gpt2-large gpt3 transformer-base" -d "a preset's own words"
complete -c mha -n "__fish_seen_subcommand_from bench; and __fish_contains_opt table" -a "operator gradients linear layer" -d "a section of the table"
complete -c mha -n "__fish_seen_subcommand_from tensors" -l strict -d "refuse what is otherwise a warning"
complete -c mha -n "__fish_seen_subcommand_from tensors" -F
complete -c mha -n "__fish_seen_subcommand_from corpus" -l split -x -a "train valid test" -d "part of the corpus"
complete -c mha -n "__fish_seen_subcommand_from corpus" -l count -x -d "number of pairs"
complete -c mha -n "__fish_seen_subcommand_from corpus" -l stats -d "count all splits"
complete -c mha -n "__fish_seen_subcommand_from demo" -l sentence -x -d "the sentence"
complete -c mha -n "__fish_seen_subcommand_from demo" -l causal -d "see only what came before"
complete -c mha -n "__fish_seen_subcommand_from demo" -l heads -x -a "1 2 4 8 16 32 64" -d "heads"
complete -c mha -n "__fish_seen_subcommand_from demo" -l svg -r -F -d "write the picture to a file"
