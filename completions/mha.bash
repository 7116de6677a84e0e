# SPDX-License-Identifier: MIT
# bash completion for mha

_mha_suffixes="f32 f16 bf16 f64 native q= k= v= o= causal tl br offset= window= mask=bool50 mask=add \
bias alibi sink softcap= scale= dropout= pad padk docs= packed lse weights avg stats grad \
layout=bhld layout=blhd t="
_mha_layer_suffixes="f32 f16 bf16 i8 native cache= causal gemv t="
_mha_presets="bert-base bert-large gpt2-small gpt2-large gpt3 transformer-base"

# A problem word: extents are the user's own, suffixes are offered after each colon. Bash breaks
# words at colons, so only the last part is ours to replace. Layer words begin with their kind, most
# of them then have a preset.
_mha_word() {
    local offered=
    case $1 in
    layer:*:* | decode:*:* | cache:*:* | linear:*:* | openblas:*:*) offered=$_mha_layer_suffixes ;;
    layer:* | decode:* | cache:*) offered=$_mha_presets ;;
    linear:* | openblas:*) offered=m512n2304k768 ;;
    *:*) offered=$_mha_suffixes ;;
    b*) ;;
    *) offered="b1h12l1024d64 linear layer decode cache openblas" ;;
    esac
    COMPREPLY=($(compgen -W "$offered" -- "${cur##*:}"))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}

_mha() {
    local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=${COMP_WORDS[1]} line=${COMP_LINE:0:COMP_POINT}
    COMPREPLY=()
    [[ $cur == : ]] && cur=
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "demo verify bench explain prove conv inspect embed generate score tokenize tensors corpus scenes bleu train sweep translate show see heads ablate prune view serve version words help --help --version" \
            -- "$cur"))
        return
    fi
    [[ $command == see && $previous == --heads ]] && previous=--svg
    [[ $command == score && $previous == --tokens ]] && previous=
    [[ $command == tokenize && $previous == --count ]] && previous=
    if [[ $command == train && $previous == --pooling ]]; then
        COMPREPLY=($(compgen -W "class mean" -- "$cur"))
        return
    fi
    if [[ $command == train && $previous == --places ]]; then
        COMPREPLY=($(compgen -W "learned sines" -- "$cur"))
        return
    fi
    case $previous in
    --svg | --tikz | --model | --texts | --pairs | --valid | --alignments | --tokenizer | --npy | --prompt-cache | -o | --checkpoint | --curve | --log | --images | --confusion | --ablation | --weights | --tokens)
        COMPREPLY=($(compgen -f -- "$cur"))
        return
        ;;
    --preset)
        COMPREPLY=($(compgen -W "$_mha_presets" -- "$cur"))
        return
        ;;
    --type)
        COMPREPLY=($(compgen -W "f16 f32" -- "$cur"))
        return
        ;;
    --kernel)
        COMPREPLY=($(compgen -W "identity blur sharpen edge emboss sobel" -- "$cur") $(compgen -f -- "$cur"))
        return
        ;;
    --padding)
        COMPREPLY=($(compgen -W "replicate zero circular valid" -- "$cur"))
        return
        ;;
    --kind)
        COMPREPLY=($(compgen -W "encoder decoder cross" -- "$cur"))
        return
        ;;
    --values)
        COMPREPLY=($(compgen -W "raw norm" -- "$cur"))
        return
        ;;
    --mode)
        COMPREPLY=($(compgen -W "zero mean uniform" -- "$cur"))
        return
        ;;
    --sort)
        COMPREPLY=($(compgen -W "layer head score importance entropy smoothed broad confidence \
            distance far sink first end prev self next duplicate induction question rare one aer says \
            reads apart" -- "$cur"))
        return
        ;;
    --store)
        COMPREPLY=($(compgen -W "f32 f16 bf16 i8 q8 q4" -- "$cur"))
        return
        ;;
    --arithmetic)
        COMPREPLY=($(compgen -W "exact native" -- "$cur"))
        return
        ;;
    --pooling)
        COMPREPLY=($(compgen -W "model mean first last max" -- "$cur"))
        return
        ;;
    --tokenize)
        COMPREPLY=($(compgen -W "13a none" -- "$cur"))
        return
        ;;
    --language)
        COMPREPLY=($(compgen -W "english french" -- "$cur"))
        return
        ;;
    --split)
        COMPREPLY=($(compgen -W "train valid test" -- "$cur"))
        return
        ;;
    --sentences | --where | --like | --keep | --to | --study | --beam | --best | --length-penalty | --layer | --head | --evaluate | \
        --alpha | --configs | --count | --seed | --threads | --rounds | --heads | --sentence | --steps | \
        --batch | --width | --ff | --layers | --encoder-layers | --decoder-layers | --lr | \
        --warm-up | --dropout | --label-smoothing | --weight-decay | --clip | \
        --batch-tokens | --micro-batches | --schedule | --attention-gain | --attention-dropout | --head-dropout | --bpe-dropout | --copy | --numbers | --join | --bare | --ema | --average | --average-every | --patience | \
        --vocabulary | --positions | --translate | \
        --unknown | --checkpoint-every | --rank | --top | --longest | --most | --system | \
        --temperature | --top-k | --top-p | --min-p | --repetition-penalty | --stop | --context) return ;;
    esac
    local options
    case $command in
    demo) options="--sentence --causal --heads --seed --svg --help" ;;
    verify) options="--configs --seed --case --threads --json --help" ;;
    bench) options="--threads --rounds --preset --table --json --help" ;;
    explain) options="--threads --json --help" ;;
    prove) options="--seed --full --svg --threads --json --help scores pointwise convolution places cost fold heads data" ;;
    conv) options="-o --figure --pixel --kernel --heads --alpha --padding --threads --json --help" ;;
    inspect) options="--model --tokenizer --store --arithmetic --json --help" ;;
    embed)
        options="--model --rank --top --pooling --normalize --longest --npy --tokenizer --store --arithmetic
            --threads --json --help"
        ;;
    generate)
        options="--model --most --chat --system --temperature --top-k --top-p --min-p
            --repetition-penalty --seed --stop --context --prompt-cache --quiet --tokenizer
            --store --arithmetic --threads --help"
        ;;
    score) options="--model --tokens --tokenizer --store --arithmetic --threads --json --help" ;;
    tokenize) options="--model --plain --ids --count --decode --json --help" ;;
    tensors) options="--strict --json --help" ;;
    bleu) options="--tsv --tokenize --json --help" ;;
    corpus) options="--split --count --seed --stats --json --help" ;;
    scenes) options="--split --count --seed -o --stats --json --help" ;;
    train)
        options="-o --pairs --valid --vocabulary --tokenizer --positions --start --steps --batch --batch-tokens
            --micro-batches --width --heads --ff --layers --encoder-layers --decoder-layers --lr --warm-up --schedule
            --attention-gain --dropout --attention-dropout --head-dropout --bpe-dropout --copy --numbers --join
            --bare --label-smoothing --weight-decay --clip --ema --average --average-every --patience --arithmetic --seed --sentences --unknown --images --scenes --classes --image-size
            --patch --stride --pooling --places --crop --flip --erase --mix-up --detect --queries --nothing-weight --box-weight --overlap-weight --confusion --threads --resume --force
            --checkpoint --checkpoint-every --curve --log --type --evaluate --translate --quiet --help"
        ;;
    sweep)
        options="--heads --data --seeds -o --svg --log --resume --force --target --evaluate --points
            --steps --batch --width --ff --lr --warm-up --dropout --label-smoothing --weight-decay
            --seed --layers --threads --json --quiet --help"
        ;;
    translate)
        options="--model --beam --best --length-penalty --attention --layer --head --svg --gold
            --evaluate --split --seed --errors --no-cache --store --arithmetic --threads --json
            --help"
        ;;
    show)
        options="--to --model --texts --kind --layer --head --where --mean --values --study --words --svg --tikz
            --width --threads --json --help"
        ;;
    view) options="-o --to --model --texts --study --ablation --weights --tokens --live --store --lecture --layer --words --threads --help" ;;
    see) options="--model --heads --top --language --boxes --least --scenes --split --seed --images --count --confusion --store --arithmetic --threads --json --help" ;;
    serve) options="--port --model --texts --lecture --threads --open --help" ;;
    heads)
        options="--model --texts --pairs --images --alignments --target-first --sentences --split --seed --kind
            --where --sort --like --gold --pieces --threads --json --help"
        ;;
    ablate)
        options="--model --texts --pairs --images --mode --together --repair --words --to --sentences --split --seed
            --svg --threads --json --help"
        ;;
    prune)
        options="--keep --model --texts --pairs --images --curve -o --zeros --replace --sentences --split --seed
            --threads --json --help"
        ;;
    version) options="--json --help" ;;
    help)
        COMPREPLY=($(compgen -W "demo verify bench explain prove conv inspect embed generate score tokenize tensors corpus scenes bleu train sweep translate show see heads ablate prune view serve version words" -- "$cur"))
        return
        ;;
    *) return ;;
    esac
    if [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$cur"))
    elif [[ $line == *" --table "* ]]; then
        COMPREPLY=($(compgen -W "operator gradients linear layer model" -- "$cur"))
    elif [[ $command == bench || $command == explain || $previous == --case ]]; then
        _mha_word "${line##* }"
    elif [[ $command == tensors || $command == inspect || $command == bleu || $command == serve ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}

complete -F _mha mha
